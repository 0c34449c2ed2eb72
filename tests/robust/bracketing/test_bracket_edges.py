"""Brackets at the edges: logits that cancel, nothing right, nothing finite, nothing found, small budgets."""

import itertools
import math
import time
from dataclasses import replace

import pytest
import torch

from polyrelu.data import Dataset
from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.robust import (
    CERTIFICATES,
    BoundsInconsistentError,
    BracketStatus,
    Budget,
    Certificate,
    bracket,
    certified_radius,
    margin_of,
)
from polyrelu.robust.bracketing import strategies as bounds
from polyrelu.robust.certify import Scope, Tier, certify
from polyrelu.robust.core import ReducedNet
from polyrelu.robust.core.relaxation import Relaxation, box_terms

NONE = Budget(nodes=0)


def net_of(W, V, p, *, bias=None, **given):
    """The PolyReLUNet with these rows of weights and outputs."""
    W, V = torch.as_tensor(W, dtype=torch.float64), torch.as_tensor(V, dtype=torch.float64)
    net = PolyReLUNet(W.shape[1], len(W), p=p, outputs=len(V), bias=bias is not None, dtype=torch.float64, **given)
    with torch.no_grad():
        net.weight.copy_(W), net.output.copy_(V)
        if bias is not None:
            net.bias.copy_(torch.as_tensor(bias, dtype=torch.float64))
    return net


def random_net(p, seed, width=6, dim=2, outputs=3, bias=True, **given):
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    net = net_of(normal(width, dim), normal(outputs, width), p, bias=0.3 * normal(outputs) if bias else None, **given)
    X = normal(6, dim)
    with torch.no_grad():
        f = net(X)
    return net, X, torch.where(f > 0, 1.0, -1.0).double() if outputs == 1 else f.argmax(1)


def cancelling(p, big, seed, width=3):
    """Two classes with a large part in common, and the same decisions, exactly, as one logit."""
    draw = torch.Generator().manual_seed(seed)
    W, X = (torch.randn(n, 2, generator=draw, dtype=torch.float64) for n in (width, 4))
    small = torch.randn(width, generator=draw, dtype=torch.float64)
    common = big * (1 + torch.rand(width, generator=draw, dtype=torch.float64))
    several = net_of(W, torch.stack([common + small, common]), p)
    alone = net_of(W, (several.output[:1] - several.output[1:]).detach(), p)  # nearly equal numbers: no rounding
    with torch.no_grad():
        y = torch.where(alone(X) > 0, 0, 1)
    return several, alone, X, y


@pytest.mark.slow
@pytest.mark.parametrize("big", [1e6, 1e10])
@pytest.mark.parametrize("p", [1, 3])
def test_logits_that_cancel_prove_nothing_false(p, big):
    for seed in range(3):
        several, alone, X, y = cancelling(p, big, seed)
        true = bracket(alone, X, torch.where(y == 0, 1.0, -1.0).double(), budget=NONE).upper
        assert (bracket(several, X, y, budget=NONE).lower <= true * (1 + 1e-12)).all(), seed


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, "inf"])
def test_logits_that_cancel_are_no_bug_of_ours(norm):
    # The proof knows the difference of the outputs exactly; an attack on float64 logits of 1e13 does not.
    for seed in range(6):
        several, _, X, y = cancelling(1, 1e13, seed, width=2)
        found = bracket(several, X, y, norm=norm)
        assert (found.lower <= found.upper).all()


class Wrong(Certificate):
    scope = Scope(Tier.EVERY_NORM)

    def radius(self, job):
        return torch.full((len(job),), 9.0).double()


def test_a_proof_above_an_honest_attack_is_still_a_bug(monkeypatch):
    net, X, y = random_net(3, 0)
    monkeypatch.setitem(CERTIFICATES, "linear-or-lipschitz", Wrong())
    with pytest.raises(BoundsInconsistentError):
        bracket(net, X, y, norm=1)


@pytest.mark.parametrize("norm", [1, 2, "inf"])
def test_every_point_wrong(norm):
    net, X, y = random_net(3, 0, outputs=1)
    found = bracket(net, X, -y, norm=norm)
    assert (found.upper == 0).all() and (found.lower == 0).all() and set(found.status) == {BracketStatus.WRONG}


@pytest.mark.parametrize("norm", [2, "inf"])
def test_what_is_not_finite_is_neither_right_nor_wrong(norm):
    net, X, y = random_net(3, 0)
    with pytest.raises(InputError, match=r"^margin of X\[2\]=.*1 rows .*overflow"):
        bracket(net, torch.cat([X[:2], 1e120 * X[2:3], X[3:]]), y, norm=norm)
    with torch.no_grad():
        net.weight[1, 0] = math.nan
    with pytest.raises(InputError, match=r"^net\.weight=NaN: expected numbers"):
        bracket(net, X, y, norm=norm)
    module = torch.nn.Linear(2, 3).double()
    with torch.no_grad():
        module.bias[0] = math.inf
    with pytest.raises(InputError, match=r"^net\.bias=NaN or infinity"):
        bracket(module, X, y, norm=norm)


def test_margins_that_underflow_count_as_wrong_and_claim_no_more():
    found = bracket(net_of(torch.eye(2), [[1, -1]], 3), torch.tensor([[1e-120, 0.0]]).double(), torch.ones(1).double())
    assert found.upper.tolist() == [0] and "float64" in found.status[0].value


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_never_below_the_cheap_proofs(p):
    for seed in range(2):
        net, X, y = random_net(p, seed, normalise_input=seed % 2 == 1)
        found = bracket(net, X, y, budget=NONE)
        known = torch.minimum(certified_radius(net, X, y), found.upper / 1.001)
        assert (found.lower >= known * (1 - 1e-12)).all(), seed


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [0, 7, 40])
@pytest.mark.parametrize("p", [1, 2])
def test_no_more_nodes_than_allowed(p, nodes):
    # The whole ball takes up to two nodes for each of four rivals (three for p > 1), once more in the last round.
    net, X, y = random_net(p, 0, outputs=5)
    spent, whole = bracket(net, X, y, budget=Budget(nodes=nodes)).nodes, 8 if p == 1 else 12
    assert (spent <= max(nodes, whole) + (whole if nodes else 0)).all()


@pytest.mark.slow
def test_further_rounds_get_what_is_left(monkeypatch):
    given = []

    def noted(*args, budget, **options):
        given.append((len(args[1]), budget))
        return certify(*args, budget=budget, **options)

    monkeypatch.setattr(bounds, "certify", noted)
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 1e-3 * next(ticks))  # a look at the clock takes a millisecond
    net, X, y = random_net(2, 1, width=12, dim=4, outputs=3, normalise_input=True)
    bracket(net, X, y, budget=Budget(nodes=40, seconds=5.0))
    assert len(given) > 1 and sum(one.nodes for _, one in given) <= 40
    assert all(points * one.seconds < 5.0 * len(X) for points, one in given[1:])
    given.clear()
    bracket(net, X, y, budget=Budget(nodes=None, seconds=1e-9))
    assert len(given) == 1


def broken_at(net, X, y, found):
    with torch.no_grad():
        return bool((margin_of(net(X + found.perturbation), y) <= 0).all())


@pytest.mark.slow
def test_a_net_without_opposite_terms_breaks_where_all_neurons_are_off():
    # f > 0 unless <w_j, x - c> <= 0 for all j; c itself may be out of reach of x + d in float64.
    for seed in range(5):
        draw = torch.Generator().manual_seed(seed)
        W, centre, X = (torch.randn(n, 4, generator=draw, dtype=torch.float64) for n in (4, 1, 12))
        net = net_of(W, [[1.0, 2.0, 0.5, 1.0]], 4, centre=centre[0] / 3, normalise_input=True)
        with torch.no_grad():
            X = X[net(X) > 0]
        y = torch.ones(len(X)).double()
        found = bracket(net, X, y, budget=NONE)
        assert found.upper.isfinite().all() and broken_at(net, X, y, found)
        assert (found.upper <= torch.linalg.vector_norm(X - net.centre, dim=1) * 1.05).all()


@pytest.mark.slow
@pytest.mark.parametrize("p, seed", [(2, 5), (3, 0), (3, 5)])
def test_breaking_points_are_found_without_a_budget(p, seed):
    # A bias beside normalised inputs counts |x|^(p-1) times, which the convex-concave attack takes at the point itself.
    net, X, y = random_net(p, seed, outputs=1, normalise_input=True)
    found = bracket(net, X, y, budget=NONE)
    assert found.upper.isfinite().all() and broken_at(net, X, y, found)


@pytest.mark.slow
def test_progress_is_told_within_a_block():
    heard = []

    class Heard(Progress):
        def update(self, *, done):
            heard.append(done)

    net, X, y = random_net(2, 1, width=12, dim=4, outputs=3, normalise_input=True)
    bracket(net, X, y, budget=Budget(nodes=60), progress=Heard())
    assert heard == sorted(heard) and heard[-1] == len(X)
    assert len(set(heard)) >= 4  # not all at once


def test_bad_arguments_are_named():
    net, X, y = random_net(3, 0, outputs=1)
    wide = Dataset(torch.eye(3).double(), torch.tensor([1, -1, 1]))
    classes = Dataset(torch.eye(2).double(), torch.tensor([0, 1]))
    cases = [
        (r"pool=3 columns", lambda: bracket(net, X, y, pool=wide)),
        (r"pool\.y=", lambda: bracket(net, X, y, pool=classes)),
        (r"norm=None", lambda: bracket(net, X, y, norm=None)),
        (r"budget=5", lambda: bracket(net, X, y, budget=5)),
        (r"budget\.nodes=1\.5", lambda: Budget(nodes=1.5)),
        (r"budget\.nodes=True", lambda: Budget(nodes=True)),
        (r"budget\.seconds=soon", lambda: Budget(seconds="soon")),
        (r"budget\.seconds=nan", lambda: Budget(seconds=math.nan)),
    ]
    for words, call in cases:
        with pytest.raises(InputError, match=f"^{words}"):
            call()


def test_neurons_that_vanish_beside_a_bias_are_not_called_constant():
    # v |w| = 1e-400 is 0 in float64 but not in truth: nothing is found, and nothing infinite is claimed.
    net = net_of(1e-200 * torch.eye(2).double(), [[1e-200, -1e-200]], 3, bias=[1.0])
    found = bracket(net, torch.eye(2).double(), torch.ones(2).double(), budget=NONE)
    assert (found.lower < 1e133).all() and set(found.status) == {BracketStatus.UNBROKEN}


@pytest.mark.parametrize("norm", [1, 2, "inf"])
def test_a_bias_beyond_all_numbers_is_not_counted_for_more_than_it_is(norm):
    # 1 + v |w| (relu(x_1)^3 - relu(x_2)^3) with v |w| = 1e-320: at x_2 = 1e107 it is below 0.
    net = net_of(1e-160 * torch.eye(2).double(), [[1e-160, -1e-160]], 3, bias=[1.0])
    assert (certified_radius(net, torch.eye(2).double(), torch.ones(2).double(), norm) < 1e107).all()


@pytest.mark.parametrize("p", [2.5, 3, 4])
def test_majorants_on_boxes_keep_to_the_curvature_allowed(p):
    # Just below the curvature p (p-1) hi^(p-2) that needs no bending, at hi = 1.
    K = p * (p - 1) * (1 - torch.tensor([[0.0], [1e-12], [5e-10], [2e-9], [1e-6]]).double())
    one, many = torch.ones(len(K), 1, dtype=torch.float64), torch.zeros(len(K), dtype=torch.float64)
    leaf = Relaxation(one[:1], p, p * one, one, one, many, one, 0 * one, many, K, -one, one)
    for t in (0.3, 0.999, 1.0):
        terms = box_terms(leaf, t * one, torch.ones(len(K)).double(), -one, one)
        assert (terms.second <= K * (1 + 1e-15)).all()
        assert (terms.value >= t**p * (1 - 1e-15)).all()


@pytest.mark.slow
def test_a_basis_that_stretches_shortens_what_is_proven():
    net, X, y = random_net(3, 2, outputs=1, bias=False)
    shallow = ReducedNet.from_net(net)
    assert 1 <= shallow.stretch <= 1 + 1e-12
    rows, ball = shallow.rows(X, y), torch.full((len(X),), 10.0).double()
    plain, longer = (
        certify(one, X, y, rows, rows.s, ball, tol=1e-3, budget=NONE).lower
        for one in (shallow, replace(shallow, stretch=1.25))
    )
    assert (plain > 0).any()
    torch.testing.assert_close(longer, plain / 1.25, rtol=1e-9, atol=0)
