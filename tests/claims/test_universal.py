"""Claims about one direction for all points and radii from slopes: complete, able to fail, formulas right."""

import math

import pytest
import torch

from polyrelu.claims import universal
from polyrelu.claims.claim import Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.papers import PAPERS
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.claims.universal import CLAIMS, slope, sphere, with_ones
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import AverageClassifier
from polyrelu.report.paper_figures.fvbs23.universal import FIGURES

BY_ID = {claim.id: claim for claim in CLAIMS}
each = pytest.mark.parametrize("claim", CLAIMS, ids=BY_ID)


@pytest.fixture(scope="module")
def outcomes():
    """Every experiment once; on the sphere in fewer dimensions, called by the names of the true ones."""
    found = {}
    for experiment in {claim.experiment.name: claim.experiment for claim in CLAIMS}.values():
        parts = experiment.parts("quick")
        if experiment.run is sphere:
            names = {str(part["dim"]): str(part["dim"] // 4) for part in parts}
            runs = [sphere("quick", 0, part["dim"] // 4, part["exponent"]) for part in parts]
            runs = [_renamed(run, part["dim"], names) for run, part in zip(runs, parts, strict=True)]
        else:
            runs = [experiment.run("quick", 0, **part) for part in parts]
        found[experiment.name] = [Outcome(0, part, run) for part, run in zip(parts, runs, strict=True)]
    return found


def _renamed(run, dim, names):
    values = {name.replace(f"d = {names[str(dim)]}", f"d = {dim}"): value for name, value in run.values.items()}
    return Measured(values, {**run.data, "dim": dim})


@each
def test_a_claim_is_complete(claim, outcomes):
    assert claim.sentence.endswith(".")
    assert claim.paper in PAPERS
    for profile in PROFILES:
        assert for_profile(claim.checks, profile)
        assert for_profile(claim.settings, profile)
        assert claim.experiment.needs(profile) == ""
    numbers = judge(claim, "quick", outcomes[claim.experiment.name]).numbers
    assert all(not math.isnan(value) for number in numbers for value in number.values)


@pytest.mark.parametrize("name", ["E10", "E13", "E26"])
def test_the_claim_holds(name, outcomes):
    claim = BY_ID[name]
    assert judge(claim, "quick", outcomes[claim.experiment.name]).verdict is Verdict.REPRODUCED


@each
def test_a_wrong_number_turns_the_verdict(claim, outcomes):
    mine = outcomes[claim.experiment.name]
    for check in for_profile(claim.checks, "quick"):
        if check.quantity.startswith("slope"):
            continue
        wrong = check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01
        for bad in (wrong, math.nan):
            values = [
                {**o.measured.values, **({check.quantity: bad} if check.quantity in o.measured.values else {})}
                for o in mine
            ]
            broken = [Outcome(0, o.part, Measured(one)) for o, one in zip(mine, values, strict=True)]
            assert judge(claim, "quick", broken).verdict is Verdict.DIFFERS


@pytest.mark.parametrize(("name", "start"), [("E13", "|z| that flips half"), ("E14", "c over sqrt(d), d")])
def test_another_power_turns_the_verdict(name, start, outcomes):
    # lengths that do not shrink with k or d at all, as a robust net would have them
    claim = BY_ID[name]
    broken = []
    for outcome in outcomes[claim.experiment.name]:
        size = math.sqrt(outcome.part["k"]) if name == "E13" else 0.2
        flat = {key: size if key.startswith(start) else value for key, value in outcome.measured.values.items()}
        broken.append(Outcome(0, outcome.part, Measured(flat)))
    assert judge(claim, "quick", broken).verdict is Verdict.DIFFERS


def test_slope_of_a_power_law():
    values = {f"c, d = {d}": 3 * d**-0.7 for d in (10, 40, 300)} | {"c, m, d = 5": 99.0}
    assert slope(values, "c, d = ") == pytest.approx(-0.7, abs=1e-12)


def test_a_column_of_ones_is_a_bias():
    data = OrthonormalMixture(5, 2, 2, 0.1, dtype=torch.float64).sample(8, 0)
    wide = with_ones(data)
    assert torch.equal(wide.rows()[:, :5], data.rows()) and bool((wide.rows()[:, 5] == 1).all())
    assert torch.equal(wide.y, data.y)


def test_flips_of_f_are_at_one_over_root_k():
    # F at its centres breaks along z at |z| = 1/sqrt(K) exactly; the column of ones does not move.
    mixture = OrthonormalMixture(16, 3, 2, 0.0, dtype=torch.float64)
    padded = torch.cat([mixture.centres, torch.zeros(5, 1)], dim=1)
    run = type("Run", (), {"net": AverageClassifier(padded, mixture.labels)})()
    found = universal._flips(run, with_ones(mixture.sample(10, 0)), mixture.labels @ mixture.centres)
    assert found == pytest.approx(1 / math.sqrt(5), rel=1e-9)


def test_the_figure_is_drawn_from_what_there_is(outcomes):
    (figure,) = FIGURES
    picture = figure.draw(outcomes)
    assert set(figure.claims) <= set(BY_ID)
    titles = [axes.get_title(loc="left") for axes in picture.axes]
    assert titles == ["k clusters: fresh points flipped", "k clusters: length of z", "Sphere: smallest c that flips I"]
    half = picture.axes[1].lines[0].get_ydata()[0]  # k = 2
    measured = outcomes["universal.clusters"][0].measured.values["|z| that flips half over sqrt(d/k), k = 2"]
    assert half == pytest.approx(measured / math.sqrt(2), rel=1e-2)
