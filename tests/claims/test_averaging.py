"""Feature averaging: the proven radii are the closed forms at centres and sound elsewhere; claims can fail."""

import math

import pytest
import torch

from polyrelu.claims import averaging, averaging_breaking, averaging_scaling
from polyrelu.claims.claim import Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.papers import PAPERS
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.claims.setups import averaging_nets
from polyrelu.claims.setups.averaging_nets import Recipe, TwoSided, pgd, radii, trained_pair
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import RobustClassifier
from polyrelu.report.paper_figures import FIGURES

CLAIMS = {claim.id: claim for room in (averaging, averaging_breaking, averaging_scaling) for claim in room.CLAIMS}
each = pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
DIM, K = 36, 10
MIXTURE = OrthonormalMixture(DIM, 6, 4, 1.0, scale="sqrt_dim", rotate=3, dtype=torch.float64)
MU, LABELS = MIXTURE.centres, MIXTURE.labels
NONE = torch.zeros(K, dtype=torch.float64)


def random_net(seed, rule, dim=2):
    source = torch.Generator().manual_seed(seed)
    W = torch.randn(6, dim, generator=source, dtype=torch.float64)
    b = 0.5 * torch.randn(6, generator=source, dtype=torch.float64)
    return TwoSided(W, b, torch.tensor([1.0, 1, 1, -1, -1, -1]), rule), torch.randn(
        20, dim, generator=source, dtype=torch.float64
    )


def test_two_sided_nets_are_the_nets_of_the_package():
    pair = trained_pair("quick", 0, 4, Recipe(32, 40, 0.02, 20))
    X = pair.test(30).rows()
    torch.testing.assert_close(pair.average()(X), pair.averaged(X))
    for rule in averaging.RULES:
        torch.testing.assert_close(pair.readout(rule)(X), pair.decoupled.binary(X, pair.mixture.labels, rule))
    built = TwoSided(4 / DIM * MU, NONE - 2, LABELS, "sum")
    X = MIXTURE.sample(30, seed=0).rows()
    torch.testing.assert_close(built(X), RobustClassifier(MU, LABELS)(X))


@pytest.mark.parametrize("rule", averaging.RULES)
def test_the_pieces_have_the_net_as_their_maximum(rule):
    net, X = random_net(0, rule, dim=5)
    plus, minus = ((X @ slope.T + offset).amax(dim=1) for slope, offset in (net.pieces(1.0), net.pieces(-1.0)))
    torch.testing.assert_close(plus - minus, net(X).detach())


def test_radii_at_the_centres_are_the_closed_forms():
    opposite = torch.where(LABELS > 0, 4.0, 6.0)
    sums = torch.stack([MU[:6].sum(0), MU[6:].sum(0)])
    averaged = TwoSided(sums, NONE[:2], torch.tensor([1.0, -1.0]), "sum")
    built = TwoSided(4 / DIM * MU, NONE - 2, LABELS, "sum")
    exact = {
        "averaged": (averaged.proven(MU, LABELS), math.sqrt(DIM / K) * torch.ones(K)),
        "sum": (TwoSided(MU, NONE, LABELS, "sum").proven(MU, LABELS), torch.sqrt(DIM / (1 + opposite))),
        "max": (TwoSided(MU, NONE, LABELS, "max").proven(MU, LABELS), math.sqrt(DIM / 2) * torch.ones(K)),
        "hand-built": (built.proven(MU, LABELS), math.sqrt(DIM) / 2 * torch.ones(K)),
        "other sign": (built.proven(MU, LABELS, strictly=True), math.sqrt(DIM / 2) * torch.ones(K)),
    }
    for name, (found, wanted) in exact.items():
        torch.testing.assert_close(found, wanted.double(), msg=name)
    even = OrthonormalMixture(DIM, 5, 5, 1.0, scale="sqrt_dim", dtype=torch.float64)
    turned = averaging_scaling._turned(TwoSided(4 / DIM * even.centres, NONE - 2, even.labels, "sum"), even)
    torch.testing.assert_close(turned, torch.full_like(turned, math.sqrt(DIM / 2)), rtol=0, atol=6 / 2000)
    assert averaging_scaling._turned(built, even).isinf().all()  # other centres: never


@pytest.mark.parametrize("rule", averaging.RULES)
def test_nothing_breaks_within_the_proven_radius(rule):
    angles = torch.linspace(0, 2 * math.pi, 721, dtype=torch.float64)
    circle, tight = torch.stack([angles.cos(), angles.sin()], dim=1), 0
    for seed in range(20):
        net, X = random_net(seed, rule)
        X = X[net(X) != 0]
        y = net(X).detach().sign()
        proven = net.proven(X, y).clamp(max=10)
        for part in (0.5, 0.9, 1 - 1e-9, 1.02):
            Z = X[:, None] + part * proven[:, None, None] * circle
            broken = (y[:, None] * net(Z.flatten(0, 1)).reshape(len(X), -1) <= 0).any(dim=1)
            assert part > 1 or not broken.any()
        tight += int(broken.sum())
    assert tight > 200  # of some 380: mostly it is the radius itself


def test_a_wrong_point_has_radius_0_and_a_constant_net_never_breaks():
    net = TwoSided(MU, NONE, LABELS, "sum")
    assert (net.proven(MU, -LABELS) == 0).all()
    one_sided = TwoSided(MU[:2], NONE[:2] + 1, torch.tensor([1.0, -1.0]), "sum")
    one_sided.weight.data[:] = 0
    one_sided.bias[1] = -1
    assert one_sided.proven(MU[:1], LABELS[:1]).isinf().all()


def test_nets_are_the_same_in_the_span_of_their_neurons():
    net, X = random_net(1, "sum", dim=40)
    small, Q = net.inside()
    assert Q.shape == (6, 40)
    torch.testing.assert_close(small(X @ Q.T), net(X))
    y = net(X).detach().sign()
    torch.testing.assert_close(small.proven(X @ Q.T, y), net.proven(X, y))


def test_points_break_where_the_proof_ends():
    data = OrthonormalMixture(DIM, 6, 4, 0.2, scale="sqrt_dim", rotate=3, dtype=torch.float64).sample(30, seed=0)
    averaged = TwoSided(torch.stack([MU[:6].sum(0), MU[6:].sum(0)]), NONE[:2] + 0.5, torch.tensor([1.0, -1.0]), "sum")
    for net in (averaged, TwoSided(MU, NONE, LABELS, "sum"), TwoSided(MU, NONE, LABELS, "max")):
        lower, upper = radii(net, data, data)
        assert (lower <= upper).all()
        assert (upper / lower).median() < 1.02
        assert upper.isfinite().all()


def test_pgd_goes_as_far_as_it_may():
    way = torch.tensor([3.0, 4.0])
    X = torch.tensor([[1.0, 1.0], [0.0, 5.0]])
    torch.testing.assert_close(pgd(lambda Z: Z @ way, X, 2.0), X + torch.tensor([1.2, 1.6]))
    assert torch.equal(pgd(lambda Z: 0 * Z.sum(dim=1), X, 2.0), X)


def test_slopes_over_margins_of_the_ideal_nets():
    assert list(averaging.ideal_ratios().values()) == pytest.approx([math.sqrt(5), math.sqrt(6), 3])


def test_the_published_radii_in_units_of_the_dimension():
    assert [averaging_breaking.share(r) for r in (16, 34, 38)] == [".289√d", ".613√d", ".686√d"]


def inside(checks, wrong=None):
    """Values inside every check but the one numbered ``wrong``."""
    values = {}
    for number, check in enumerate(checks):
        bounds = [bound for bound in (check.low, check.high) if math.isfinite(bound)]
        out = check.low - 1e-3 * (1 + abs(check.low)) if math.isfinite(check.low) else check.high + 1e-3
        values[check.quantity] = out if number == wrong else sum(bounds) / len(bounds)
    return values


def test_these_are_the_claims():
    assert sorted(CLAIMS, key=lambda id: int(id[1:])) == [
        "C1",
        "C2",
        "C3",
        "C4",
        "C5",
        "C6",
        "C7",
        "C8",
        "C9",
        "C14",
        "C15",
    ]


@each
@pytest.mark.parametrize("profile", PROFILES)
def test_a_claim_is_complete_and_any_number_that_is_off_turns_the_verdict(claim, profile, monkeypatch):
    assert claim.sentence.endswith(".") and claim.paper in PAPERS and for_profile(claim.settings, profile).endswith(".")
    assert claim.experiment.needs(profile) == ""
    monkeypatch.setattr("polyrelu.claims.judge._by_seed", lambda claim, kept: [kept[0].measured.values])
    checks = for_profile(claim.why, profile) or for_profile(claim.checks, profile)
    good = judge(claim, profile, [Outcome(0, {}, Measured(inside(checks)))])
    assert good.verdict is for_profile(claim.expects, profile) and (claim.reason or not claim.why)
    for wrong in range(len(checks)):
        broken = judge(claim, profile, [Outcome(0, {}, Measured(inside(checks, wrong)))])
        assert broken.verdict is Verdict.DIFFERS, checks[wrong].name


@pytest.fixture(scope="module")
def kept():
    """The first part of every experiment, small; the others are called after it."""
    patch = pytest.MonkeyPatch()
    small = Recipe(100, 200, 0.02, 100)
    for room in (averaging_nets, averaging_scaling):
        patch.setattr(room, "RECIPES", {"quick": small})
    for room in (averaging, averaging_breaking):
        patch.setattr(room, "POINTS", {"quick": 40})
    trained_pair.cache_clear()
    found = {}
    for experiment in {claim.experiment.name: claim.experiment for claim in CLAIMS.values()}.values():
        first, *others = experiment.parts("quick")
        run = experiment.run("quick", 0, **first)
        found[experiment.name] = [Outcome(0, first, run)]
        found[experiment.name] += [Outcome(0, part, renamed(run, first, part)) for part in others]
    patch.undo()
    trained_pair.cache_clear()
    return found


def renamed(run, first, part):
    """What ``part`` would have given, had it come out as the ``first``."""
    old, new = (", ".join(f"{name.removesuffix('im')} = {one[name]}" for name in one) for one in (first, part))
    return Measured({name.replace(old, new): value for name, value in run.values.items()}, {**run.data, **part})


@each
def test_a_small_run_gives_every_number(claim, kept):
    numbers = judge(claim, "quick", kept[claim.experiment.name]).numbers
    assert all(not math.isnan(value) for number in numbers for value in number.values)


@pytest.mark.parametrize("id", ["C6", "C7", "C15"])
def test_the_claim_holds_at_any_size(id, kept):
    assert judge(CLAIMS[id], "quick", kept[CLAIMS[id].experiment.name]).verdict is Verdict.REPRODUCED


def test_proofs_stay_below_attacks(kept):
    values = kept["averaging_breaking.curves"][0].measured.values
    for name in averaging.NETS:
        for radius in averaging_breaking.PUBLISHED[name]:
            at_radius = averaging_breaking.share(radius)
            attacked = values[f"{name}: attacked at {at_radius}"]
            assert values[f"{name}: proven at {at_radius}"] <= attacked
            assert values[f"{name}: PGD on the read-out at {at_radius}"] >= values[f"{name}: proven at {at_radius}"]
    summed, largest = (f"{name}: median radius over √d, proven" for name in averaging.RULES.values())
    assert values[summed] < 0.55 < values[largest]


def test_the_figure_is_drawn(kept):
    figure = next(one for one in FIGURES if one.id == "lpll25-averaging")
    drawn = figure.draw(kept)
    words = [text.get_text() for panel in drawn.axes for text in panel.texts]
    assert {"√(d/k)", "√(d/2)", "√(d/(1 + k/2))"} <= set(words)
    curve = drawn.axes[-1]
    assert any("published, read off" == text.get_text() for text in curve.get_legend().get_texts())
    figure.draw({})
