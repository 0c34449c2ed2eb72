"""The proven radii of two-sided nets are the closed forms at centres, and sound and tight elsewhere."""

import math

import pytest
import torch

from polyrelu.claims.lpll25.nets import TwoSidedNet, radii, trained_pair
from polyrelu.claims.lpll25.scaling import turned
from polyrelu.claims.lpll25.sizes import AVERAGED, LARGEST, SUMMED, Recipe
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import RobustClassifier

RULES = {"sum": SUMMED, "max": LARGEST}
DIM, K = 36, 10
MIXTURE = OrthonormalMixture(DIM, 6, 4, 1.0, scale="sqrt_dim", rotate=3, dtype=torch.float64)
MU, LABELS = MIXTURE.centres, MIXTURE.labels
NONE = torch.zeros(K, dtype=torch.float64)


def random_net(seed, rule, dim=2):
    source = torch.Generator().manual_seed(seed)
    W = torch.randn(6, dim, generator=source, dtype=torch.float64)
    b = 0.5 * torch.randn(6, generator=source, dtype=torch.float64)
    return TwoSidedNet(W, b, torch.tensor([1.0, 1, 1, -1, -1, -1]), rule), torch.randn(
        20, dim, generator=source, dtype=torch.float64
    )


def test_two_sided_nets_are_the_nets_of_the_package():
    pair = trained_pair("quick", 0, 4, Recipe(32, 40, 0.02, 20))
    X = pair.test(30).rows()
    torch.testing.assert_close(pair.nets()[AVERAGED](X), pair.averaged(X))
    for rule, name in RULES.items():
        torch.testing.assert_close(pair.nets()[name](X), pair.decoupled.binary(X, pair.mixture.labels, rule))
    built = TwoSidedNet(4 / DIM * MU, NONE - 2, LABELS, "sum")
    X = MIXTURE.sample(30, seed=0).rows()
    torch.testing.assert_close(built(X), RobustClassifier(MU, LABELS)(X))


@pytest.mark.parametrize("rule", RULES)
def test_the_pieces_have_the_net_as_their_maximum(rule):
    net, X = random_net(0, rule, dim=5)
    plus, minus = ((X @ slope.T + offset).amax(dim=1) for slope, offset in (net.pieces(1.0), net.pieces(-1.0)))
    torch.testing.assert_close(plus - minus, net(X).detach())


def test_radii_at_the_centres_are_the_closed_forms():
    opposite = torch.where(LABELS > 0, 4.0, 6.0)
    sums = torch.stack([MU[:6].sum(0), MU[6:].sum(0)])
    averaged = TwoSidedNet(sums, NONE[:2], torch.tensor([1.0, -1.0]), "sum")
    built = TwoSidedNet(4 / DIM * MU, NONE - 2, LABELS, "sum")
    exact = {
        "averaged": (averaged.proven(MU, LABELS), math.sqrt(DIM / K) * torch.ones(K)),
        "sum": (TwoSidedNet(MU, NONE, LABELS, "sum").proven(MU, LABELS), torch.sqrt(DIM / (1 + opposite))),
        "max": (TwoSidedNet(MU, NONE, LABELS, "max").proven(MU, LABELS), math.sqrt(DIM / 2) * torch.ones(K)),
        "hand-built": (built.proven(MU, LABELS), math.sqrt(DIM) / 2 * torch.ones(K)),
        "other sign": (built.proven(MU, LABELS, strictly=True), math.sqrt(DIM / 2) * torch.ones(K)),
    }
    for name, (found, wanted) in exact.items():
        torch.testing.assert_close(found, wanted.double(), msg=name)
    even = OrthonormalMixture(DIM, 5, 5, 1.0, scale="sqrt_dim", dtype=torch.float64)
    found = turned(TwoSidedNet(4 / DIM * even.centres, NONE - 2, even.labels, "sum"), even)
    torch.testing.assert_close(found, torch.full_like(found, math.sqrt(DIM / 2)), rtol=0, atol=6 / 2000)
    assert turned(built, even).isinf().all()  # other centres: never


@pytest.mark.parametrize("rule", RULES)
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
    net = TwoSidedNet(MU, NONE, LABELS, "sum")
    assert (net.proven(MU, -LABELS) == 0).all()
    one_sided = TwoSidedNet(MU[:2], NONE[:2] + 1, torch.tensor([1.0, -1.0]), "sum")
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
    averaged = TwoSidedNet(
        torch.stack([MU[:6].sum(0), MU[6:].sum(0)]), NONE[:2] + 0.5, torch.tensor([1.0, -1.0]), "sum"
    )
    for net in (averaged, TwoSidedNet(MU, NONE, LABELS, "sum"), TwoSidedNet(MU, NONE, LABELS, "max")):
        lower, upper = radii(net, data, data)
        assert (lower <= upper).all()
        assert (upper / lower).median() < 1.02
        assert upper.isfinite().all()
