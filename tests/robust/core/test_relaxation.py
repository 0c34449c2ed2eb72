"""The pieces of the exact certificate are what they say: majorants above, minorants below, nodes that cover."""

import math

import pytest
import torch

from polyrelu.nets import PolyReLUNet
from polyrelu.robust.certify.branch_and_bound import LeaderNodes, _divide, leader_weights
from polyrelu.robust.certify.root_relaxation import Ball, boxed, largest
from polyrelu.robust.core import ReducedNet
from polyrelu.robust.core.relaxation import (
    MU,
    Relaxation,
    box_terms,
    opposite_terms,
    overstated,
    own_slope,
    own_terms,
    solve,
)

ONE = torch.ones(1, 1, dtype=torch.float64)


def draws(seed):
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    def uniform(*shape):
        return torch.rand(*shape, generator=draw, dtype=torch.float64)

    return normal, uniform


def leaf(C, p, q, s, **parts):
    """A batch of leaves with everything that is not given equal to zero, and shares that allow no curvature."""
    B, m = len(s), len(C)
    wide = {name: torch.zeros(B, m, dtype=torch.float64) for name in ("own", "weight", "slope", "share")}
    thin = {name: torch.zeros(B, dtype=torch.float64) for name in ("own_constant", "constant")}
    full = {name: (zero + parts[name] if name in parts else zero) for name, zero in {**wide, **thin}.items()}
    q = torch.full((B, 1), float(q), dtype=torch.float64)
    return Relaxation(C, float(p), q, s, **full, low=parts.get("low"), high=parts.get("high"))


def root_of(own, constant, T, p):
    return ((own * T.clamp(min=0).pow(p)).sum(1) + constant).pow(1 / p)


def slopes(value, at, step):
    """Central differences of value(T) (B,) in every column of T (B, m)."""
    columns = torch.eye(at.shape[1], dtype=at.dtype) * step
    return torch.stack([(value(at + column) - value(at - column)) / (2 * step) for column in columns], dim=1)


@pytest.mark.parametrize("q", [1, 1.2, 1.5, 1.9, 1.97])
@pytest.mark.parametrize("K", [1e-2, 0.3, 1.7, 40.0])
def test_the_smooth_majorant_is_above_the_power_and_no_more_curved_than_allowed(q, K):
    # K = share / (lambda W); h leaves t^q at b with b^(2-q) = q^2/(2K), and is 0 left of -e.
    b = (q * q / (2 * K)) ** (1 / (2 - q))
    end = 3 * min(b, 50.0)
    T = torch.linspace(-end, end, 4001, dtype=torch.float64)[:, None]
    lam, W = torch.full((len(T),), 0.7, dtype=torch.float64), 2.5
    terms = opposite_terms(leaf(ONE, 3, q, T, weight=W, share=K * 0.7 * W), T, lam)
    h, power = terms.each / W, T.clamp(min=0).pow(q)
    assert (h >= power * (1 - 1e-13)).all()
    assert (terms.second / W <= K * (1 + 1e-12)).all()
    assert ((h == 0) == (-b * (2 / q - 1) >= T)).float().mean() > 0.999
    if b < 50:
        assert (T > b).any()
        torch.testing.assert_close(h[b < T], power[b < T], rtol=1e-13, atol=0)
        near = (T - b).abs().argmin()
        torch.testing.assert_close(h[near], power[near], rtol=1e-3, atol=0)  # the two pieces meet


BOXES = [(-1.0, 1.0), (-0.3, 2.0), (-3.0, 0.01), (0.2, 1.0), (0.6, 1.0), (0.9999, 1.0), (-1e-6, 1e-6), (-2.0, -0.5)]


@pytest.mark.slow
@pytest.mark.parametrize("p", [2.2, 2.5, 3, 4, 6])
@pytest.mark.parametrize("low, high", BOXES)
def test_the_box_majorant_is_above_the_power_on_its_box(p, low, high):
    # From far too little curvature to more than relu(t)^p ever has, p (p - 1) high^(p - 2).
    most = p * (p - 1) * max(high, 0.1) ** (p - 2)
    t = torch.linspace(low, high, 801, dtype=torch.float64)
    for fraction in (*torch.linspace(0.01, 1.05, 105).tolist(), 1 - 1e-10, 1 - 1e-7, 1.0):
        K, T = fraction * most, t[:, None]
        lows, highs = torch.full_like(T, low), torch.full_like(T, high)
        row = leaf(ONE, p, p, T, weight=1.0, share=K)
        terms = box_terms(row, T, torch.ones_like(t), lows, highs)
        below = (T.clamp(min=0).pow(p) - terms.each).amax() / max(high, 1e-300) ** p if high > 0 else -terms.each.amin()
        assert below <= 1e-14, (fraction, float(below))
        assert (terms.second <= K * (1 + 2e-9)).all(), fraction


@pytest.mark.parametrize("p", [2.2, 2.5, 3, 4, 6])
def test_the_box_majorant_never_bends_up_at_a_joint(p):
    # Strong convexity needs slope(b) - slope(a) <= K (b - a) for all a < b: curvature at points is not enough.
    for low, high in ((-1.0, 1.0), (0.3, 1.0)):
        T = torch.linspace(low - 0.5, high + 0.5, 4001, dtype=torch.float64)[:, None]
        for K in torch.linspace(0.1, 1.1 * p * (p - 1), 40).tolist():
            lows, highs = torch.full_like(T, low), torch.full_like(T, high)
            row = leaf(ONE, p, p, T, weight=1.0, share=K)
            first = box_terms(row, T, torch.ones(len(T), dtype=torch.float64), lows, highs).first
            assert (first[1:] - first[:-1] <= K * (T[1:] - T[:-1]) * (1 + 1e-6) + 1e-9).all(), K


def three(p, q, seed, box=False):
    """Three directions, eight leaves; weights, slopes and shares all different."""
    normal, uniform = draws(seed)
    C, T = normal(3, 3), normal(8, 3)
    parts = {"weight": uniform(8, 3) + 0.1, "slope": normal(8, 3), "share": uniform(8, 3) + 1}
    if box:
        parts |= {"low": T - uniform(8, 3), "high": T + uniform(8, 3)}
    return leaf(C, p, q, normal(8, 3), **parts), T, uniform(8) + 0.2


@pytest.mark.parametrize(
    "p, q, box", [(3, 1, 0), (3, 1.5, 0), (3, 1.9, 0), (2, 2, 0), (2.5, 2.5, 1), (3, 3, 1), (6, 6, 1)]
)
def test_derivatives_of_the_majorant(p, q, box):
    for seed in range(5):
        row, T, lam = three(p, q, seed, bool(box))
        terms = opposite_terms(row, T, lam)
        first = slopes(lambda at, row=row, lam=lam: opposite_terms(row, at, lam).value, T, 1e-6)
        torch.testing.assert_close(terms.first, first, rtol=1e-5, atol=1e-6)
        second = slopes(lambda at, row=row, lam=lam: opposite_terms(row, at, lam).first.sum(1), T, 1e-6)
        torch.testing.assert_close(terms.second, second, rtol=1e-4, atol=1e-4)
        up, down = (f * opposite_terms(row, T, f).value for f in (lam + 1e-6, lam - 1e-6))
        # The bisection for the joint in a box moves in small steps with lambda: p = 3 has a formula.
        loose = 1e-2 if box and p not in (3, 4) else 1e-5
        torch.testing.assert_close(terms.by_lambda, (up - down) / 2e-6, rtol=loose, atol=loose)


@pytest.mark.parametrize(
    "p, q", [(1, 1), (1.3, 1), (1.3, 1.3), (2, 1), (2, 2), (3, 1), (3, 1.7), (3, 2), (3, 3), (4, 2)]
)
def test_the_smoothed_own_terms_are_below_convex_and_differentiated_rightly(p, q):
    normal, uniform = draws(int(10 * p + q))
    C, s = normal(4, 3).abs(), normal(500, 3).abs()  # P > 0 at the point itself, as for every point that is right
    row = leaf(C, p, q, s, own=uniform(500, 4), own_constant=uniform(500) * (torch.arange(500) % 2))
    A, B = normal(500, 4), normal(500, 4)
    at = {name: own_terms(row, T).value for name, T in (("A", A), ("B", B), ("half", (A + B) / 2))}
    exact = root_of(row.own, row.own_constant, A, p).pow(q)
    assert (at["A"] <= exact * (1 + 1e-13)).all()
    assert (at["A"] >= exact - 0.05).all() and (at["A"] >= 0.99 * exact).double().mean() > 0.8  # and not far below
    size = at["A"] + at["B"]
    assert (at["half"] <= size / 2 + 1e-14 * size).all()

    T = torch.where(A.abs() < 0.02, 0.02, A)  # away from the kink, which is smoothed over a thousandth of |s|
    terms = own_terms(row, T)
    first = slopes(lambda at: own_terms(row, at).value, T, 1e-6)
    torch.testing.assert_close(terms.first, first, rtol=1e-5, atol=1e-6)
    for j in range(4):  # the Hessian is diag(second) + rank_one v v^T
        column = slopes(lambda at, j=j: own_terms(row, at).first[:, j], T, 1e-6)
        rank_one = torch.zeros_like(column) if terms.rank_one is None else terms.rank_one[:, None] * terms.vector
        hessian = rank_one * (0.0 if terms.vector is None else terms.vector[:, [j]])
        hessian[:, j] += terms.second[:, j]
        torch.testing.assert_close(hessian, column, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("p", [1, 1.3, 2, 3, 4])
def test_a_straightened_leaf_is_below_the_p_norm_everywhere(p):
    normal, uniform = draws(3)
    C, s, z = normal(4, 3), normal(300, 3), normal(300, 3)
    row = leaf(C, p, 1, s, own=uniform(300, 4), own_constant=uniform(300) * (torch.arange(300) % 2))
    straight = row.straightened(z)
    first, constant = own_slope(row, z @ C.T)
    assert (straight.own == 0).all() and (first >= 0).all() and (constant >= 0).all()
    touching = ((first * (z @ C.T)).sum(1) + constant) / root_of(row.own, row.own_constant, z @ C.T, p)
    assert (touching > 0.98).double().mean() > 0.8
    for other in (normal(300, 3), z + 0.01 * normal(300, 3), 100 * normal(300, 3), torch.zeros(300, 3).double()):
        T = other @ C.T
        linear = -(straight.slope * T).sum(1) - straight.constant
        assert (linear <= root_of(row.own, row.own_constant, T, p) + 1e-13 * T.abs().amax()).all()


@pytest.mark.parametrize("p", [2.2, 2.5, 3, 4, 6])
def test_weights_of_a_leader(p):
    # (1 + sum_j x_j^p)^(q/p) <= w_g + sum_j w_j x_j^q wherever least <= x <= most
    normal, uniform = draws(int(10 * p))
    n, m = 4000, 5
    lead = torch.arange(n) % m
    ends = torch.sort(uniform(n, m, 2), dim=2).values
    ends[: n // 4, :, 0] = 0
    ends[n // 4 : n // 2] = ends[n // 4 : n // 2, :, :1] + ends[n // 4 : n // 2] * 1e-10  # nearly fixed
    ends[n // 2 : 3 * n // 4] *= 10 ** (-8 * uniform(n // 4, m, 1))
    least, most = ends.clamp(max=1).unbind(dim=2)
    q = 1 + 0.99 * uniform(n, 1)
    w = leader_weights(lead, least, most, p, q)
    for mix in (torch.zeros(n, m), torch.ones(n, m), uniform(n, m), (normal(n, m) > 0)):
        x = (least + (most - least) * mix.double()).scatter(1, lead[:, None], 0.0)
        exact = (1 + x.pow(p).sum(1)).pow(q[:, 0] / p)
        bound = w.gather(1, lead[:, None])[:, 0] + (w.scatter(1, lead[:, None], 0.0) * x.pow(q)).sum(1)
        assert (exact <= bound * (1 + 1e-13)).all()


def test_a_leader_alone_counts_once_and_equals_count_fully():
    # x = 0: 1. All ratios fixed at 1: (1 + 2)^(q/p) exactly.
    lead, q = torch.tensor([0]), torch.full((1, 1), 1.9, dtype=torch.float64)
    zero = torch.zeros(1, 3, dtype=torch.float64)
    assert leader_weights(lead, zero, zero, 3, q)[0, 0] == 1
    equal = leader_weights(lead, zero + 1, zero + 1, 3, q)
    assert float(equal.sum()) == pytest.approx(3 ** (1.9 / 3), rel=1e-12)


def test_the_parts_of_a_divided_leader_cover_it():
    normal, uniform = draws(0)
    n, m = 3000, 4
    least, most = torch.sort(uniform(n, m, 2), dim=2).values.unbind(dim=2)
    least = least * (normal(n, m) > 0)
    lead = torch.arange(n) % m
    at = lead[:, None]
    parent, parts = _divide(LeaderNodes(torch.arange(n), lead, least, most))
    assert torch.equal(parts.row, parent) and torch.equal(parts.lead, lead[parent])
    for _ in range(10):
        x = least + (most - least) * uniform(n, m)
        inside = ((x[parent] >= parts.least) & (x[parent] <= parts.most)).scatter(1, at[parent], True).all(dim=1)
        covered = torch.zeros(n, dtype=torch.long).index_add(0, parent, inside.long()) > 0
        missed = (~covered).nonzero()[:, 0].tolist()
        assert not missed, (lead[missed[0]], least[missed[0]], most[missed[0]], x[missed[0]])


def test_largest_eigenvalue_rounded_up():
    normal, uniform = draws(1)
    C, weight = normal(6, 4), uniform(50, 6) * 10 ** (6 * normal(50, 1))
    exact = torch.stack([torch.linalg.eigvalsh((C * w[:, None]).T @ C)[-1] for w in weight])
    found = largest(C, weight)
    assert (found >= exact).all() and (found <= exact * (1 + 1e-8)).all()
    assert (largest(C, torch.zeros(2, 6).double()) > 0).all()


def small_net(p, seed, outputs=1, dim=3, width=7, **options):
    normal, uniform = draws(seed)
    options = {"bias": True, "dtype": torch.float64, **options}
    net = PolyReLUNet(dim, width, p=p, outputs=outputs, **options)
    with torch.no_grad():
        net.weight.copy_(normal(width, dim))
        net.output.copy_(normal(outputs, width))
        if net.bias is not None:
            net.bias.copy_(0.2 * normal(outputs))
    return net, normal, uniform


def labels(net, X):
    with torch.no_grad():
        f = net(X)
    return torch.where(f > 0, 1.0, -1.0).double() if f.ndim == 1 else f.argmax(1)


def ball_of(p, seed, outputs, R, normalise_input=False, tol=1e-3):
    net, normal, uniform = small_net(p, seed, outputs, normalise_input=normalise_input)
    X = normal(12, 3)
    y = labels(net, X)
    shallow = ReducedNet.from_net(net, tol)
    rows = shallow.rows(X, y)
    return Ball(shallow, y, torch.full((12,), R).double(), rows, rows.s), rows, X, normal, uniform


@pytest.mark.parametrize("p", [1, 1.3, 2, 2.5, 3, 6])
def test_shares_leave_room_for_strong_convexity(p):
    ball, rows, *_ = ball_of(p, 1, 3, 0.5)
    every, C = torch.arange(len(rows)), ball.net.C
    box = ball.boxes(every)
    for share in (ball.share, *([boxed(ball, every, *box).share] if p > 2 else [])):
        assert (share >= 0).all() and (share > 0)[(ball.part.opposite > 0) & (box[1] > 0)].all()
        top = torch.stack([torch.linalg.eigvalsh((C * w[:, None]).T @ C)[-1] for w in share])
        assert (top <= 1 - MU).all()


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("p", [1, 1.3, 2, 2.5, 3, 6])
def test_what_holds_in_the_ball_holds_in_the_ball(p, outputs):
    broken = led = 0
    for seed, R in ((1, 0.1), (2, 0.4), (3, 2.0)):
        ball, rows, _, normal, uniform = ball_of(p, seed, outputs, R, normalise_input=seed == 2)
        every = torch.arange(len(rows))
        low, high = ball.boxes(every)
        able = ball.can_lead(every)
        root = ball.part.opposite.pow(1 / p)
        for _ in range(60):
            d = normal(*rows.s.shape)
            z = rows.s + d / d.norm(dim=1, keepdim=True) * R * uniform(len(rows), 1).pow(1 / 3)
            T = z @ ball.net.C.T
            assert ((low <= T) & (high >= T)).all()
            P = (ball.part.own * T.clamp(min=0).pow(p)).sum(1) + ball.part.own_constant
            N = (ball.part.opposite * T.clamp(min=0).pow(p)).sum(1)
            breaks = P <= N + ball.slack
            broken += int(breaks.sum())
            assert (N >= ball.floor)[breaks].all()
            term, leader = (root * T.clamp(min=0)).max(dim=1)
            some = (breaks & (term > 0)).nonzero()[:, 0]
            assert able[some, leader[some]].all()
            least, most = ball.ratios(some, leader[some])
            ratio = (root * T.clamp(min=0))[some] / term[some, None]
            other = torch.arange(root.shape[1]) != leader[some, None]
            assert ((least <= ratio + 1e-12) & (most >= ratio - 1e-12))[other].all()
            led += len(some)
    assert broken > 100 and led > 100


@pytest.mark.parametrize("power", [1 / 3, 0.7, 1.0])
def test_what_the_slack_adds_to_a_root(power):
    ball, rows, _, _, uniform = ball_of(3, 1, 3, 0.1)
    every = torch.arange(len(rows))
    for slack in (1e-14, 1e-3, 1.0):
        ball.slack = torch.full_like(ball.slack, slack)
        for N in (ball.floor, ball.floor + uniform(len(rows)), ball.floor * 1e3 + 1):
            assert ((N + slack).pow(power) <= (N.pow(power) + ball.constant(every, power)) * (1 + 1e-13)).all()


def grid(low, high, count, k):
    side = torch.linspace(low, high, count, dtype=torch.float64)
    return torch.cartesian_prod(*[side] * k).view(-1, k)


def breaking(row, Z):
    """Where a leaf's relaxed condition P^(q/p) <= sum_j W_j relu(t_j)^q + <L, t> + c holds, and its box if any."""
    T = Z @ row.C.T
    P = (row.own * T.clamp(min=0).pow(row.p)).sum(1) + row.own_constant
    N = (row.weight * T.clamp(min=0).pow(row.q) + row.slope * T).sum(1) + row.constant
    inside = torch.ones(len(Z), dtype=torch.bool)
    if row.low is not None:
        inside = ((row.low <= T) & (row.high >= T)).all(dim=1)
    return (P.pow(row.q[:, 0] / row.p) <= N) & inside


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    "p, q, box",
    [(1, 1, 0), (1.3, 1.3, 0), (2, 1, 0), (2, 2, 0), (3, 1.7, 0), (3, 2, 0), (2.5, 2.5, 1), (3, 3, 1), (6, 6, 1)],
)
def test_a_leaf_never_proves_more_than_the_distance_of_its_set(p, q, box, k):
    Z = grid(-3, 3, 601 if k == 1 else 201, k)
    proven = 0
    for seed in range(8):
        normal, uniform = draws(1000 * seed + int(10 * p))
        C, s = normal(4, k), normal(1, k)
        opposite = uniform(1, 4) * torch.tensor([[0.0, 0.0, 1.0, 1.0]]).double()
        share = opposite * ((1 - MU) / largest(C, opposite))[:, None]
        parts = {
            "own": uniform(1, 4) * (opposite == 0),
            "weight": opposite,
            "share": share,
            "constant": 0.1 * uniform(1),
        }
        parts |= {"slope": 0.2 * normal(1, 4) * (seed % 2), "own_constant": uniform(1) * (seed % 3 == 0)}
        if box:
            T = s @ C.T
            parts |= {"low": T - 2 * uniform(1, 4), "high": T + 2 * uniform(1, 4)}
        row = leaf(C, p, q, s, **parts)
        most = (1 - MU) / (2 * largest(C, row.weight)) if q == 2 else None
        target = torch.full((1,), torch.inf).double()
        for start, lam in ((s, 1.0), (normal(1, k), 0.1)):
            got = solve(row, start, torch.full((1,), lam).double(), target, most=most)
            again = solve(row.straightened(got.z), got.z, got.lam, target) if q == 1 else got
            set_ = breaking(row.rows(torch.zeros(len(Z), dtype=torch.long)), Z)
            truth = (Z[set_] - s).norm(dim=1).amin() if set_.any() else math.inf
            assert max(got.bound, again.bound) <= truth
            proven += int(got.bound > 0)
    assert proven >= 2


@pytest.mark.parametrize("p", [1, 1.3, 2, 3, 4])
def test_a_leaf_without_opposite_terms_is_solved_exactly(p):
    # relu(t) <= c from s = 1, one coordinate: 1 - c. Convex, so the multiplier closes the gap; q = 1.
    constant = torch.tensor([0.1, 0.5, 0.9]).double()
    row = leaf(ONE, p, 1, torch.ones(3, 1).double(), own=1.0, constant=constant)
    inf = torch.full((3,), torch.inf).double()
    got = solve(row, torch.full((3, 1), 0.7).double(), torch.ones(3).double(), inf)
    again = solve(row.straightened(got.z), got.z, got.lam, inf)
    best = torch.maximum(got.bound, again.bound)
    assert (best <= 1 - constant).all()
    torch.testing.assert_close(best, 1 - constant, rtol=2e-4, atol=0)


def test_overstatement_is_what_branching_can_win():
    row, T, _ = three(3, 1.5, 0)
    lam = torch.full((8,), 5.0, dtype=torch.float64)
    z = T @ torch.linalg.inv(row.C).T
    over = overstated(row, z, lam)
    assert (over >= -1e-13).all() and (over > 1e-3).any()


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 4])
def test_the_slack_of_the_reduction_covers_merged_neurons(p, outputs):
    # Five directions, six neurons each, off by 1e-3: tol / 40 = 1e-2 merges them into five groups.
    normal, uniform = draws(outputs)
    centres = normal(5, 6)
    W = (centres / centres.norm(dim=1, keepdim=True)).repeat(6, 1) + 1e-3 * normal(30, 6)
    net = PolyReLUNet(6, 30, p=p, outputs=outputs, centre=0.2 * normal(6), dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(W * (0.5 + uniform(30, 1)))
        net.output.copy_(normal(outputs, 30))
    shallow = ReducedNet.from_net(net, tol=0.4)
    unit = math.exp(shallow.whole.log_unit)  # the largest coefficient, which the reduced net makes 1
    assert shallow.groups == 5
    X = normal(10, 6)
    y = labels(net, X)
    rows = shallow.rows(X, y)
    R = 0.1 + uniform(10)
    slack = shallow.slack(y, rows, R)
    closest = 0.0
    for turn in range(200):
        d = normal(10, 6)
        z = X + d / d.norm(dim=1, keepdim=True) * R[:, None] * (1 if turn % 2 else uniform(10, 1))
        with torch.no_grad():
            f = net(z)
        logits = f[:, None] if f.ndim == 1 else f
        true = (y * f) if outputs == 1 else (logits.gather(1, y[:, None]) - logits)[rows.point, rows.rival]
        T = ((z - shallow.centre) @ shallow.Q.T)[rows.point] @ shallow.C.T
        grouped = (rows.coefficient * T.clamp(min=0).pow(p)).sum(1) + rows.beta
        mistake = (true / unit - grouped).abs()
        assert (mistake <= slack).all()
        closest = max(closest, float((mistake / slack).amax()))
    assert 0.01 < closest  # able to fail


def test_neurons_without_weight_are_left_out():
    net, normal, _ = small_net(3, 0, width=6, bias=False)
    with torch.no_grad():
        net.weight[0] = 0
        net.output[0, 1] = 0
    shallow = ReducedNet.from_net(net)
    assert shallow.groups == 4
    X = normal(5, 3)
    T = X @ shallow.Q.T @ shallow.C.T
    found = T.clamp(min=0).pow(3) @ shallow.coefficients[0] * math.exp(shallow.whole.log_unit)
    torch.testing.assert_close(found, net(X).detach(), rtol=1e-12, atol=1e-14)
