"""The published estimator in few coordinates is the published estimator; what the two experiments report."""

import math

import numpy as np
import pytest
import torch

from polyrelu.claims import Measured, Outcome, Quantity, Values, Verdict, catalogue, judge, load_experiment, mv24
from polyrelu.claims.mv24 import distances, sizes
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import dist
from polyrelu.robust.distance import NeuronSum, neuron_sum_of, published_c, published_dist

CLAIMS = catalogue()


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
    parts = load_experiment(claim.experiment).parts(profile)
    return [
        Outcome(0, part, Measured({Quantity("distance", **part): distance(part["alpha"]),
                                   Quantity("published estimate", **part): estimate(part["alpha"])}))
        for part in parts
    ]  # fmt: skip


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
    alphas = sizes.ALPHAS["paper"]
    assert len(alphas) == 15
    assert (alphas[0], alphas[-1]) == (0.01, 0.3)
    assert alphas == tuple(round(float(alpha), 4) for alpha in np.linspace(0.01, 0.3, 15))
    assert distances.relu_distance.repeats["paper"] == distances.centre_distance.repeats["paper"] == 5
    assert len(distances.relu_distance.parts("quick")) == 3
    assert tuple(mv24.RELU_DISTANCE) == distances.RELU_READ_AT
    assert tuple(mv24.CENTRE_DISTANCE) == distances.CENTRE_READ_AT


def test_the_published_curve_would_be_reproduced():
    published = line(mv24.RELU_DISTANCE)
    judgement = judge(CLAIMS["B1"], "paper", outcomes(CLAIMS["B1"], "paper", published, published))
    assert judgement.verdict is Verdict.REPRODUCED
    assert judgement.shown.values[0] == pytest.approx(0.046, rel=0.02)
    larger = outcomes(CLAIMS["B1"], "paper", published, lambda alpha: 1.2 * published(alpha))
    assert judge(CLAIMS["B1"], "paper", larger).verdict is Verdict.DIFFERS


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_p3_is_an_artefact_only_if_the_estimator_shows_it(profile):
    claim, published = CLAIMS["B2"], line(mv24.CENTRE_DISTANCE)

    def verdict(distance, estimate):
        return judge(claim, profile, outcomes(claim, profile, distance, estimate)).verdict

    assert verdict(lambda alpha: 0.004, published) is Verdict.ARTEFACT
    assert verdict(published, published) is Verdict.REPRODUCED
    assert verdict(lambda alpha: 0.004, lambda alpha: 0.004) is Verdict.DIFFERS
    assert verdict(lambda alpha: 0.5, published) is Verdict.DIFFERS


def test_values_between_two_alphas_are_interpolated():
    true, estimate = ({0.04: 1.0, 0.12: 3.0}, {0.04: 1.0, 0.12: 5.0})
    values = Values({Quantity("distance", alpha=alpha): value for alpha, value in true.items()})
    values |= {Quantity("published estimate", alpha=alpha): value for alpha, value in estimate.items()}
    found = distances.relu_distance.combine(values)
    assert found[Quantity("distance, interpolated", alpha=0.05)] == pytest.approx(1.25)
    assert found[Quantity("published estimate, interpolated", alpha=0.1)] == pytest.approx(4.0)
    assert found["distance: largest over smallest alpha"] == pytest.approx(3.0)
    assert Quantity("distance, interpolated", alpha=0.2) not in found


def test_a_small_run_gives_both_numbers():
    found = distances.relu_distance("quick", 0, alpha=0.3)
    true, estimate = (found.values[Quantity(name, alpha=0.3)] for name in ("distance", "published estimate"))
    assert 0.15 < true < estimate < 0.35  # no c does better than the best one
    assert math.isclose(found.data["distance"], true)
