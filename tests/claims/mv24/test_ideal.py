"""Claims about the ideal classifiers: complete, able to fail, and made of formulas that are right."""

import io
import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from polyrelu.claims import PAPERS, PROFILES, Measured, Outcome, Standing, Verdict, for_profile, judge, load_experiment
from polyrelu.claims.mv24 import attacks, bayes, closed_forms, ideal
from polyrelu.claims.mv24.claims import ideal as ideal_claims
from polyrelu.claims.setups import mixture_nets
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import AverageClassifier, BayesClassifier, CentreClassifier, NearestCentre, PolyReLUNet
from polyrelu.report.paper_figures.mv24.ideal import blind, scaling
from polyrelu.robust import Bracket, BracketStatus
from polyrelu.robust.attacks import PGD, CentreToCentre, PublishedPGD
from polyrelu.robust.theory import average_robust_accuracy, impossibility_bound

CLAIMS = {claim.id: claim for claim in ideal_claims.CLAIMS}
SLOW = ("fragility", "resistance", "impossibility", "bayes", "starts", "same_classifier")
each = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)


def stand_in_bracket(net, X, y, **_):
    size, none = torch.ones(len(X), dtype=torch.float64), torch.zeros(len(X), dtype=torch.int64)
    return Bracket(0.70 * size, 0.71 * size, torch.zeros_like(X), (BracketStatus.CLOSED,) * len(X), 2.0, none)


def stand_in_trained(size, p, seed):
    mixture = OrthonormalMixture(20, 6, 4, 0.1)
    data = mixture.sample(20, seed=seed)
    net = mixture_nets.ideal(mixture, p)
    return SimpleNamespace(mixture=mixture, data=data, net=net, test=partial(mixture.sample, seed=1))


@pytest.fixture(scope="module")
def outcomes(run):
    """Every experiment once; the slow ones with stand-ins and few points: their values have names and no meaning."""
    experiments = {claim.experiment: load_experiment(claim.experiment) for claim in CLAIMS.values()}
    slow = {name for name in experiments if name.rpartition(".")[2] in SLOW}
    sample = OrthonormalMixture.sample
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closed_forms, "POWERS", (3.0,))
        found = {name: run(experiments[name])[1] for name in experiments if name not in slow}
        patch.setattr(OrthonormalMixture, "sample", lambda self, n, seed: sample(self, min(n, 20), seed))
        for module in (ideal, bayes, attacks):
            patch.setattr(module, "bracket", stand_in_bracket)
        patch.setattr(bayes, "trained", stand_in_trained)
        patch.setattr(attacks, "DeepFool", partial(attacks.DeepFool, steps=1))
        patch.setattr(attacks, "PGD", partial(PGD, steps=2))
        patch.setattr(attacks, "PublishedPGD", lambda steps: PublishedPGD(steps=2))
        return found | {name: run(experiments[name])[1] for name in slow}


def test_the_claims_are_a1_to_a15():
    assert sorted(CLAIMS) == sorted(f"A{number}" for number in range(1, 16))


@each
def test_a_claim_is_complete(claim, outcomes):
    assert claim.sentence.endswith(".")
    assert claim.paper in PAPERS
    given = {name for outcome in outcomes[claim.experiment] for name in outcome.measured.values}
    for profile in PROFILES:
        checks = (*for_profile(claim.checks, profile), *for_profile(claim.why, profile))
        assert {check.quantity for check in checks} <= given
        assert for_profile(claim.settings, profile)
        assert load_experiment(claim.experiment).needs(profile) == ""
        assert load_experiment(claim.experiment).repeats[profile] >= 1
        assert (for_profile(claim.expects, profile) is Verdict.ARTEFACT) == bool(
            for_profile(claim.why, profile) and claim.reason
        )


@pytest.mark.parametrize("id", ["A1", "A2", "A3", "A6", "A9", "A11", "A12", "A15"])
def test_what_is_cheap_is_reproduced(id, outcomes):
    judgement = judge(CLAIMS[id], "quick", outcomes[CLAIMS[id].experiment])
    assert judgement.verdict is Verdict.REPRODUCED
    assert judgement.as_expected


@each
@pytest.mark.parametrize("profile", PROFILES)
def test_any_number_that_is_off_turns_the_verdict(claim, profile, without_combining, values_for):
    checks = for_profile(claim.why, profile) or for_profile(claim.checks, profile)
    assert judge(claim, profile, [Outcome(0, {}, Measured(values_for(checks)))]).verdict is for_profile(
        claim.expects, profile
    )
    for wrong in range(len(checks)):
        judgement = judge(claim, profile, [Outcome(0, {}, Measured(values_for(checks, wrong)))])
        assert judgement.verdict is Verdict.DIFFERS, checks[wrong].quantity
        assert not judgement.as_expected


def test_the_artefact_would_be_reproduced_if_the_plotted_curve_were_true(values_for, verdict):
    claim = CLAIMS["A10"]
    assert verdict(claim, "quick", values_for(claim.checks)) is Verdict.REPRODUCED
    assert claim.standing is Standing.READ_OFF


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id", "module", "name", "instead"),
    [
        ("A3", ideal, "AverageClassifier", CentreClassifier),
        ("A6", ideal, "centre_critical_radius", lambda p, opposite: math.sqrt(0.5)),
        ("A9", bayes, "BayesClassifier", lambda centres, labels, alpha: AverageClassifier(centres, labels)),
        ("A15", closed_forms, "CentreClassifier", lambda centres, labels, p: CentreClassifier(centres, labels, 1)),
    ],
)
def test_a_broken_measurement_differs(id, module, name, instead, monkeypatch, run):
    monkeypatch.setattr(module, name, instead)
    assert judge(CLAIMS[id], "quick", run(load_experiment(CLAIMS[id].experiment))[1]).verdict is Verdict.DIFFERS


def test_the_accuracies_of_averages_are_those_of_the_closed_form():
    for alpha, share in ideal_claims.F_ACCURACY.items():
        assert share == pytest.approx(average_robust_accuracy(0, 100, 6, 4, alpha), abs=1e-6)
    assert CLAIMS["A7"].checks[0].published == impossibility_bound(6, 4)


def test_half_radius_lies_on_the_line_and_never_goes_back():
    radii = np.array([0.1, 0.2, 0.3, 0.4])
    assert attacks.half_radius(radii, np.array([1.0, 0.75, 0.25, 0.0])) == pytest.approx(0.25)
    assert attacks.half_radius(radii, np.array([1.0, 0.4, 0.9, 0.0])) == pytest.approx(0.1 + 0.1 * 5 / 6)
    assert attacks.half_radius(radii, np.array([1.0, 1.0, 1.0, 0.9])) == 0.4


def test_the_proof_for_bayes_is_exact_for_two_clusters_and_never_above_an_attack():
    pair = OrthonormalMixture(4, 1, 1, 0.3, dtype=torch.float64)
    radius = mixture_nets.proven_for_bayes(pair.centres, pair.labels, pair)
    assert radius.tolist() == pytest.approx([math.sqrt(0.5)] * 2)
    many = OrthonormalMixture(12, 6, 4, 0.3, dtype=torch.float64)
    data, net = many.sample(50, seed=0), BayesClassifier(many.centres, many.labels, 0.3)
    found = CentreToCentre()(net, data.rows(), data.y, pool=data).radius
    proven = mixture_nets.proven_for_bayes(data.rows(), data.y, many)
    assert (proven <= found).all()
    assert (found - proven).max() < 0.09 / 12 * math.log(24) / math.sqrt(2)  # (alpha^2/D) (log K1 + log K2)/sqrt(2)


def test_half_way_moves_break_a_constant_on_one_class_and_nearest_centres_on_both():
    mixture = OrthonormalMixture(10, 6, 4, 0.0, dtype=torch.float64)
    data = mixture.sample(100, seed=0)
    assert bayes.broken_midway(lambda X: torch.ones(len(X)), data, mixture) == pytest.approx(0.4)
    assert bayes.broken_midway(lambda X: -torch.ones(len(X)), data, mixture) == pytest.approx(0.6)
    net = NearestCentre(mixture.centres, mixture.labels)  # 0 half-way, which counts as broken
    assert bayes.broken_midway(net, data, mixture) == 1
    assert bayes.nearest_neighbour(data)(mixture.centres).sign().tolist() == mixture.labels.tolist()


@pytest.mark.parametrize("p", [2.5, 3.0, 6.0])
def test_the_solver_finds_the_radius_at_a_centre(p):
    x, own = torch.eye(5, dtype=torch.float64)[0], torch.tensor([1.0, 1, -1, -1, -1], dtype=torch.float64)
    assert closed_forms.nearest(x, own, p, seed=0) == pytest.approx(math.sqrt(0.5), abs=1e-7)
    assert closed_forms.nearest(torch.eye(5, dtype=torch.float64)[2], -own, p, seed=0) == pytest.approx(math.sqrt(0.5))


def test_deepfool_is_exact_where_the_net_is_linear():
    net = PolyReLUNet(3, 3, 1, outputs=3, init="zeros", dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.eye(3))
        net.output.copy_(torch.eye(3))
    X = torch.tensor([[3.0, 1.0, 2.0], [1.0, 1.5, 9.0]], dtype=torch.float64)
    radius = attacks.DeepFool()(net, X, torch.tensor([0, 2])).radius
    assert radius.tolist() == pytest.approx([1 / math.sqrt(2), 7.5 / math.sqrt(2)])


@pytest.mark.slow
@pytest.mark.parametrize("figure", (scaling, blind), ids=lambda figure: figure.id)
def test_figures_are_drawn_from_their_own_claims(figure, outcomes):
    names = {CLAIMS[id].experiment for id in figure.claims}
    buffer = io.BytesIO()
    figure.draw({name: outcomes[name] for name in names}).savefig(buffer, format="png")
    with Image.open(buffer) as image:
        assert len(image.convert("L").getcolors()) > 50


def test_the_exact_accuracy_is_that_of_the_closed_form_where_there_is_one():
    """K1 = K2 = 1 and p = 1: relu(a) - relu(b) > 0 unless b >= a, or both are <= 0."""
    from scipy.integrate import quad
    from scipy.stats import norm

    deviation = 0.7
    found = ideal.centre_accuracy(1, 1, 1, deviation)
    exact, _ = quad(lambda a: norm.pdf(a, 1, deviation) * norm.cdf(a, 0, deviation), 0, 1 + 8 * deviation)
    both = norm.cdf(0, 1, deviation) * norm.cdf(0, 0, deviation)  # F = 0 there: half of it is counted
    assert found == pytest.approx(exact + both / 2, abs=1e-4)
    assert ideal.centre_accuracy(3, 6, 4, 1e-3) == pytest.approx(1, abs=1e-9)
