"""The published estimator in few coordinates is the published estimator; what the two experiments report."""

import math

import pytest
import torch

from polyrelu.claims import distances
from polyrelu.claims.claim import Verdict
from polyrelu.claims.judge import Outcome, judge
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import dist
from polyrelu.robust.distance import NeuronSum, neuron_sum_of, published_c, published_dist

CLAIMS = {claim.id: claim for claim in distances.CLAIMS}


def off_by(share, dim):
    """F^(3) of 6 + 4 centres as directions and coefficients, and with its first coefficient larger by ``share``."""
    mixture = OrthonormalMixture(dim, 6, 4, 0.1)
    F = neuron_sum_of("F", CentreClassifier(mixture.centres, mixture.labels, 3))
    a = F.a.clone()
    a[0] *= 1 + share
    return NeuronSum(F.U, a, 3), F


def test_few_coordinates_give_what_the_published_procedure_gives():
    mixture = OrthonormalMixture(30, 3, 2, 0.1)
    net = PolyReLUNet(30, 6, 3, init="gaussian", scale=1.0, seed=1)
    F = CentreClassifier(mixture.centres, mixture.labels, 3)
    c = published_c(net, F, mixture)
    for steps in (1, 40):
        whole = published_dist(net, F, mixture, batches=1, size=1000, steps=steps).value
        few = distances.published_ascent(neuron_sum_of("f", net), neuron_sum_of("F", F), c, starts=1000, steps=steps)
        assert few == pytest.approx(whole, rel=1e-3)


def test_the_guard_hides_a_coefficient_that_is_3_percent_off():
    f, F = off_by(0.03, 1000)
    assert distances.published_ascent(f, F, 1.0, starts=300, steps=300) < 1e-4
    g, G = off_by(0.03, 20)
    assert distances.published_ascent(g, G, 1.0, starts=300, steps=1500) == pytest.approx(0.03, rel=1e-2)


def test_the_best_factor_halves_that_distance():
    mixture = OrthonormalMixture(20, 6, 4, 0.1)
    net = CentreClassifier(mixture.centres, mixture.labels, 3).as_polyrelu_net()
    with torch.no_grad():
        net.output[0, 0] *= 1.04
    exact = 0.04 / 2.04  # c 1.04 - 1 = 1 - c
    assert dist(net, CentreClassifier(mixture.centres, mixture.labels, 3)).value == pytest.approx(exact, rel=1e-4)


def outcomes(claim, profile, distance, estimate):
    """What the experiment keeps if distance and estimate are these functions of alpha."""
    parts = claim.experiment.parts(profile)
    return [
        Outcome(0, part, distances._measured(part["alpha"], distance(part["alpha"]), estimate(part["alpha"]), -4.5))
        for part in parts
    ]


def line(numbers):
    """The published curve between the points read off."""
    alphas = list(numbers)

    def value(alpha):
        low = max([a for a in alphas if a <= alpha], default=alphas[0])
        high = min([a for a in alphas if a >= alpha], default=alphas[-1])
        share = 0 if low == high else (alpha - low) / (high - low)
        return (1 - share) * numbers[low] + share * numbers[high]

    return value


def test_the_alphas_are_the_published_ones():
    assert len(distances.ALPHAS) == 15
    assert (distances.ALPHAS[0], distances.ALPHAS[-1]) == (0.01, 0.3)
    assert distances.RELU_DISTANCE.repeats["paper"] == distances.CENTRE_DISTANCE.repeats["paper"] == 5
    assert len(distances.RELU_DISTANCE.parts("quick")) == 3


def test_the_published_curve_would_be_reproduced():
    published = line(distances.RELU)
    judgement = judge(CLAIMS["B1"], "paper", outcomes(CLAIMS["B1"], "paper", published, published))
    assert judgement.verdict is Verdict.REPRODUCED
    assert judgement.shown.values[0] == pytest.approx(0.046, rel=0.02)
    larger = outcomes(CLAIMS["B1"], "paper", published, lambda alpha: 1.2 * published(alpha))
    assert judge(CLAIMS["B1"], "paper", larger).verdict is Verdict.DIFFERS


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_p3_is_an_artefact_only_if_the_estimator_shows_it(profile):
    claim, published = CLAIMS["B2"], line(distances.CENTRES)

    def verdict(distance, estimate):
        return judge(claim, profile, outcomes(claim, profile, distance, estimate)).verdict

    assert verdict(lambda alpha: 0.004, published) is Verdict.ARTEFACT
    assert verdict(published, published) is Verdict.REPRODUCED
    assert verdict(lambda alpha: 0.004, lambda alpha: 0.004) is Verdict.DIFFERS
    assert verdict(lambda alpha: 0.5, published) is Verdict.DIFFERS


def test_values_between_two_alphas_are_interpolated():
    found = distances.RELU_DISTANCE.combine(
        {"distance, alpha 0.04": 1.0, "distance, alpha 0.12": 3.0, "published estimate, alpha 0.04": 1.0}
        | {"published estimate, alpha 0.12": 5.0}
    )
    assert found["distance at 0.05"] == pytest.approx(1.25)
    assert found["published estimate at 0.1"] == pytest.approx(4.0)
    assert found["distance: largest over smallest alpha"] == pytest.approx(3.0)
    assert "distance at 0.2" not in found


def test_a_small_run_gives_both_numbers():
    found = distances.relu_distance("quick", 0, alpha=0.3)
    true, estimate = found.values["distance, alpha 0.3"], found.values["published estimate, alpha 0.3"]
    assert 0.15 < true < estimate < 0.35  # no c does better than the best one
    assert math.isclose(found.data["distance"], true)
