"""The cheap certificate: exact where it should be, never above the truth, and the same in every unit."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, Polar, PolyReLUNet
from polyrelu.robust import average_radius, centre_radius, margin_of, root_lipschitz_radius
from polyrelu.robust.certify import LipschitzConstants
from polyrelu.robust.certify import lipschitz as cheap
from polyrelu.robust.certify.lipschitz import ScaledNet, steepest_falls

EVERY_P = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
NORMS = [1.0, 2.0, math.inf]


def net_of(W: list[list[float]], v: list[list[float]], p: float, bias: list[float] | None = None, **more: bool):
    """A float64 net with these weights and, for unit rows of W, coefficients a_j = v_j."""
    net = PolyReLUNet(
        len(W[0]), len(W), p, len(v), init="zeros", bias=bias is not None, dtype=torch.float64, **more
    ).requires_grad_(False)
    net.weight.copy_(torch.tensor(W, dtype=torch.float64))
    net.output.copy_(torch.tensor(v, dtype=torch.float64))
    if net.bias is not None:
        net.bias.copy_(torch.tensor(bias))
    return net


def small_net(seed: int, p: float, outputs: int) -> PolyReLUNet:
    """D = 2, h = 3..8; bias, centre and input normalisation by turns, every other net with directions that coincide."""
    rng = torch.Generator().manual_seed(seed)
    h = 3 + seed % 6
    centre = torch.randn(2, generator=rng, dtype=torch.float64) if seed & 1 else None
    net = PolyReLUNet(
        2, h, p, outputs, bias=bool(seed & 2), centre=centre, normalise_input=bool(seed & 4), dtype=torch.float64
    ).requires_grad_(False)
    angle = torch.rand(h, generator=rng, dtype=torch.float64) * 2 * math.pi
    if seed & 8:
        angle = (angle * 4 / math.pi).round() * math.pi / 4
    size = 0.3 + torch.rand(h, generator=rng, dtype=torch.float64)
    net.weight.copy_(size[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1))
    net.output.copy_(torch.randn(outputs, h, generator=rng, dtype=torch.float64))
    if net.bias is not None:
        net.bias.copy_(0.3 * torch.randn(outputs, generator=rng, dtype=torch.float64))
    return net


def points_of(net: PolyReLUNet, seed: int, n: int = 5) -> tuple[Tensor, Tensor]:
    """Points with the label they get, except the last, which has another."""
    X = 1.5 * torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    logits = net(X)
    y = torch.where(logits > 0, 1, -1) if logits.ndim == 1 else logits.argmax(dim=1)
    y[-1] = -y[-1] if logits.ndim == 1 else (y[-1] + 1) % net.outputs
    return X, y


def broken(net: PolyReLUNet, X: Tensor, y: Tensor) -> Tensor:
    """Perturbations (n, directions, 2) that break the net, the shortest along each direction of a grid; or NaN."""
    turn = torch.arange(120, dtype=torch.float64) * math.pi / 60
    way = torch.stack([turn.cos(), turn.sin()], dim=1)
    radii = torch.linspace(0, 1, 41, dtype=torch.float64).square() * 6

    def breaks(r: Tensor) -> Tensor:
        Z = X[:, None, None] + r[..., None] * way[:, None]
        labels = y.repeat_interleave(Z[0, ..., 0].numel())
        return (margin_of(net(Z.view(-1, 2)), labels) < -1e-13).view(Z.shape[:3])

    first = breaks(radii.expand(len(X), len(way), -1))
    at = first.int().argmax(dim=2)
    high, low = radii[at], radii[(at - 1).clamp(min=0)]
    for _ in range(20):
        middle = (low + high) / 2
        here = breaks(middle[..., None])[..., 0]
        high, low = torch.where(here, middle, high), torch.where(here, low, middle)
    return torch.where(first.any(dim=2), high, torch.nan)[..., None] * way


@pytest.mark.slow
@pytest.mark.parametrize("p", EVERY_P)
@pytest.mark.parametrize("outputs", [1, 3])
def test_never_above_the_radius_found_on_a_dense_grid(p: float, outputs: int) -> None:
    useful = 0
    for seed in range(17):
        net = small_net(seed, p, outputs)
        X, y = points_of(net, seed)
        found = broken(net, X, y)
        for norm in NORMS:
            radius = root_lipschitz_radius(net, X, y, norm)
            truth = torch.linalg.vector_norm(found, ord=norm, dim=2).nan_to_num(torch.inf).amin(dim=1)
            assert (radius <= truth).all(), (seed, norm)
            assert radius[-1] == 0  # misclassified
            useful += int((radius > 0.2 * truth).sum())
    assert useful > 17 * 3


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 1.9, 2.0, 2.1, 3.0, 4.0, 7.0])
@pytest.mark.parametrize("norm", NORMS)
def test_no_direction_falls_faster_than_the_constant(p: float, norm: float) -> None:
    rng = torch.Generator().manual_seed(0)
    for h, D, balance in [(1, 1, 0.0), (2, 3, 0.0), (9, 4, 1.0), (30, 5, -1.0), (12, 40, 0.5)]:
        net = PolyReLUNet(D, h, p, init="zeros", dtype=torch.float64).requires_grad_(False)
        net.weight.copy_(torch.randn(h, D, generator=rng) + 0.5)
        net.output.copy_(torch.randn(1, h, generator=rng).exp() * (torch.randn(1, h, generator=rng) + balance))
        neurons = ScaledNet.from_net(net)
        a = neurons.rivals(1.0).A
        d = torch.randn(5000, D, generator=rng, dtype=torch.float64)
        U = neurons.U
        d = torch.cat([d, -U, U, d.sign(), torch.eye(D, dtype=torch.float64), U[:1] - U, a @ U])
        d = d[d.abs().amax(dim=1) > 0]
        d = d / torch.linalg.vector_norm(d, ord=norm, dim=1, keepdim=True)
        t = d @ neurons.U.T
        own, opposite = a.clamp(min=0), (-a).clamp(min=0)
        fall = (own * (-t).relu().pow(p)).sum(1).pow(1 / p) + (opposite * t.relu().pow(p)).sum(1).pow(1 / p)
        bound = steepest_falls(neurons, a, norm)
        assert fall.amax() <= bound
        assert bound <= 12 * fall.amax()  # and it says something


def test_is_the_closed_form_of_the_average_classifier() -> None:
    # F, y = +1: r = min(s/sqrt(K1), (s - t)/sqrt(K)); the certificate is (s - relu(t))/sqrt(K), equal where t >= 0
    mixture = OrthonormalMixture(50, 6, 4, 0.5, rotate=1, dtype=torch.float64)
    data = mixture.sample(200, seed=0)
    X, y, labels = data.rows(), data.y.double(), mixture.labels
    radius = root_lipschitz_radius(AverageClassifier(mixture.centres, labels).as_polyrelu_net(), X, y)
    true = average_radius(X, y, mixture.centres, labels)
    sums = torch.stack([mixture.centres[labels == sign].sum(0) for sign in (1, -1)])
    s, t = (X @ sums.T).unbind(dim=1)
    s, t = torch.where(y > 0, s, t), torch.where(y > 0, t, s)
    exact = (t >= 0) & (true > 0) & ((true - (s - t) / math.sqrt(10)).abs() < 1e-12)
    assert exact.sum() > 50
    assert radius[exact] == pytest.approx(true[exact], rel=1e-10)
    assert (radius <= true).all()


@pytest.mark.parametrize("p", [2.0, 2.5, 3.0, 4.0, 6.0])
def test_is_exact_at_orthonormal_centres(p: float) -> None:
    labels = torch.tensor([1.0] * 6 + [-1.0] * 4, dtype=torch.float64)
    centres = OrthonormalMixture(60, 6, 4, 0.0, rotate=3, dtype=torch.float64).centres
    radius = root_lipschitz_radius(CentreClassifier(centres, labels, p).as_polyrelu_net(), centres, labels)
    assert radius == pytest.approx(math.sqrt(0.5), rel=1e-9)


@pytest.mark.parametrize(("p", "least"), [(1.0, 0.65), (1.5, 0.8), (2.0, 0.95), (3.0, 0.95), (4.0, 0.95)])
def test_is_close_to_the_closed_form_at_noisy_points(p: float, least: float) -> None:
    mixture = OrthonormalMixture(200, 6, 4, 0.1, dtype=torch.float64)
    data = mixture.sample(100, seed=0)
    X, y = data.rows(), data.y.double()
    true = centre_radius(X, y, mixture.centres, mixture.labels, p)
    ratio = root_lipschitz_radius(CentreClassifier(mixture.centres, mixture.labels, p).as_polyrelu_net(), X, y) / true
    assert ratio.max() <= 1
    assert ratio.min() >= least


@pytest.mark.parametrize("p", EVERY_P)
def test_one_neuron_by_hand(p: float) -> None:
    # f = relu(x_1)^p breaks at x_1 = 0, distance 3 in every norm; pi_P = 3, L = 1. With w = (3, 4)/5 and x = (2, 1):
    # <w, x> = 2, and |w|_dual = 0.8 (l1), 1 (l2), 1.4 (l-infinity)
    straight, tilted = net_of([[1.0, 0.0]], [[1.0]], p), net_of([[0.6, 0.8]], [[1.0]], p)
    for norm, dual in zip(NORMS, (0.8, 1.0, 1.4), strict=True):
        x, one = torch.tensor([[3.0, 1.0], [2.0, 1.0]], dtype=torch.float64), torch.ones(1)
        radius = root_lipschitz_radius(straight, x[:1], one, norm).item()
        assert 3 * (1 - 1e-10) < radius <= 3
        assert root_lipschitz_radius(tilted, x[1:], one, norm).item() == pytest.approx(2 / dual, rel=1e-10)


@pytest.mark.parametrize("p", EVERY_P)
def test_biases_by_hand(p: float) -> None:
    # f = relu(x)^p - b breaks where relu(x) = b^(1/p); f = b - relu(x)^p likewise; both are exact, L = 1
    root, x, one = 0.5 ** (1 / p), torch.tensor([[2.0]], dtype=torch.float64), torch.ones(1)
    assert root_lipschitz_radius(net_of([[1.0]], [[1.0]], p, [-0.5]), x, one).item() == pytest.approx(
        2 - root, rel=1e-9
    )
    assert root_lipschitz_radius(net_of([[1.0]], [[-1.0]], p, [0.5]), -x, one).item() == pytest.approx(root, rel=1e-9)
    # normalised, on the line: f = relu(x) - b for every p, broken at x = b; bounded by the fixed point of
    # r = 2 - (b (2 + r)^(p-1))^(1/p), the bias counted where it is largest
    radius = root_lipschitz_radius(net_of([[1.0]], [[1.0]], p, [-0.5], normalise_input=True), x, one).item()
    largest = 2 + radius if p > 1 else 1.0
    assert radius == pytest.approx(2 - (0.5 * largest ** (p - 1)) ** (1 / p), rel=1e-9)
    assert 0.1 < radius <= 1.5


@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("norm", NORMS)
def test_units_do_not_matter(p: float, norm: float) -> None:
    net = small_net(8, p, 3)  # no bias, no centre
    X, y = points_of(net, 0)
    plain = root_lipschitz_radius(net, X, y, norm)
    assert root_lipschitz_radius(net, 1e-30 * X, y, norm) * 1e30 == pytest.approx(plain, rel=1e-9)
    net.output.mul_(1e20)
    assert root_lipschitz_radius(net, X, y, norm) == pytest.approx(plain, rel=1e-9)
    polar = net.polar()
    faint = PolyReLUNet.from_polar(Polar(polar.u, polar.q, polar.log_r - 900, polar.log_s - 900), like=net)
    assert root_lipschitz_radius(faint, X, y, norm) == pytest.approx(plain, rel=1e-9)
    dead = polar.log_r.clone().fill_(-torch.inf)
    r, s = torch.cat([polar.log_r - 900, dead]), torch.cat([polar.log_s - 900, dead])
    with_dead = PolyReLUNet.from_polar(Polar(polar.u.repeat(2, 1), polar.q.repeat(2, 1), r, s), like=net)
    assert root_lipschitz_radius(with_dead, X, y, norm) == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_splitting_neurons_changes_nothing(p: float) -> None:
    mixture = OrthonormalMixture(20, 3, 2, 0.2, dtype=torch.float64)
    X, y = mixture.sample(20, seed=0).rows(), mixture.sample(20, seed=0).y
    whole = CentreClassifier(mixture.centres, mixture.labels, p).as_polyrelu_net()
    parts = net_of(mixture.centres.repeat(8, 1).tolist(), [(mixture.labels / 8).repeat(8).tolist()], p)
    assert root_lipschitz_radius(parts, X, y) == pytest.approx(root_lipschitz_radius(whole, X, y), rel=1e-8)


def test_faint_neurons_hardly_matter() -> None:
    # beside F^(3) ninety neurons of weight 1e-14 each that point anywhere, as small starts leave them
    mixture = OrthonormalMixture(20, 3, 2, 0.2, dtype=torch.float64)
    X, y = mixture.sample(20, seed=0).rows(), mixture.sample(20, seed=0).y
    whole = CentreClassifier(mixture.centres, mixture.labels, 3).as_polyrelu_net()
    rows = torch.nn.functional.normalize(torch.randn(90, 20, generator=torch.Generator().manual_seed(0)).double())
    both = net_of([*mixture.centres.tolist(), *rows.tolist()], [[*mixture.labels.tolist(), *[1e-14, -1e-14] * 45]], 3.0)
    assert (root_lipschitz_radius(both, X, y) >= 0.99 * root_lipschitz_radius(whole, X, y)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("outputs", [1, 3])
def test_one_object_serves_many_calls(dtype: torch.dtype, outputs: int) -> None:
    net = PolyReLUNet(10, 20, 3.0, outputs, bias=True, normalise_input=True, dtype=dtype)
    X = torch.randn(40, 10, generator=torch.Generator().manual_seed(0)).to(dtype)
    y = torch.where(net(X) > 0, 1, -1) if outputs == 1 else net(X).argmax(dim=1)
    for norm in NORMS:
        cheap, together = LipschitzConstants.from_net(net, norm), root_lipschitz_radius(net, X, y, norm)
        assert together.dtype == torch.float64
        assert (together > 0).all()
        singles = torch.cat([cheap.radius(X[i : i + 1], y[i : i + 1]) for i in range(len(X))])
        assert singles == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_what_cannot_break_and_what_is_always_broken(norm: float) -> None:
    x, one = torch.ones(1, 2, dtype=torch.float64), torch.ones(1)
    assert root_lipschitz_radius(net_of([[0.0, 0.0]], [[1.0]], 2.0, [1.0]), x, one, norm).item() > 1e100
    assert root_lipschitz_radius(net_of([[0.0, 0.0]], [[1.0]], 2.0), x, one, norm).item() == 0
    assert root_lipschitz_radius(net_of([[1.0, 0.0]], [[1.0]], 2.0), 0 * x, one, norm).item() == 0


def test_large_nets_are_no_trouble() -> None:
    net = PolyReLUNet(300, 900, 3.0, dtype=torch.float64)
    X = torch.randn(5, 300, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert (root_lipschitz_radius(net, X, torch.where(net(X) > 0, 1, -1)) > 0).all()


def test_bad_arguments_are_named() -> None:
    net, x = net_of([[1.0, 0.0]], [[1.0]], 2.0), torch.ones(1, 2, dtype=torch.float64)
    with pytest.raises(InputError, match="norm=3"):
        root_lipschitz_radius(net, x, torch.ones(1), 3)
    with pytest.raises(InputError, match="labels"):
        root_lipschitz_radius(net, x, torch.zeros(1))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 7.5])
@pytest.mark.parametrize("block", [1, 50, cheap.BLOCK])
def test_the_constant_does_not_depend_on_how_many_products_are_held_at_a_time(monkeypatch, p, block):
    # own neurons at -e_1 and e_2, opposite ones at e_1, eight each: G(e_1) = 2 8^(1/p)
    monkeypatch.setattr(cheap, "BLOCK", block)
    sides = [[-1.0, 0.0]] * 8 + [[0.0, 1.0]] * 8 + [[1.0, 0.0]] * 8
    net = ScaledNet.from_net(net_of(sides, [[1.0] * 16 + [-1.0] * 8], p))
    fall = float(steepest_falls(net, net.rivals(1.0).A, 2.0))
    assert fall >= 2 * 8 ** (1 / p)
    assert fall <= 2 * 8 ** (1 / p) * (1 + 1e-9) or p <= 2
