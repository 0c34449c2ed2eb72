"""Lipschitz constants: never below a slope that exists, exact where they say so."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from polyrelu.bias import lipschitz, lipschitz_radius
from polyrelu.bias.lipschitz import filter_norm
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import (
    MLP,
    AverageClassifier,
    BayesClassifier,
    CentreClassifier,
    FixedOutputNet,
    GroupedNet,
    LeakyReLUNet,
    LogisticRegression,
    PlainPolyNet,
    PolyReLUNet,
    SmallCNN,
    TanhNet,
)

EVERY_P = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
D64 = {"dtype": torch.float64}


def net_of(W: list[list[float]] | Tensor, v: list[float], p: float, **more: bool) -> PolyReLUNet:
    W = torch.as_tensor(W, dtype=torch.float64)
    net = PolyReLUNet(W.shape[1], len(W), p, init="zeros", **D64, **more).requires_grad_(False)
    net.weight.copy_(W)
    net.output.copy_(torch.tensor(v, dtype=torch.float64))
    return net


def slopes(net: nn.Module, X: Tensor) -> float:
    """The largest gradient norm of any margin at these points, by automatic differentiation."""
    X = X.clone().requires_grad_(True)
    out = net(X)
    out = out[:, None] if out.ndim == 1 else out
    grads = [torch.autograd.grad(out[:, c].sum(), X, retain_graph=True)[0] for c in range(out.shape[1])]
    if len(grads) > 1:
        grads = [a - b for i, a in enumerate(grads) for b in grads[:i]]
    return max(float(g.norm(dim=1).amax()) for g in grads)


def chords(net: nn.Module, X: Tensor, Y: Tensor) -> float:
    """The largest |q(x) - q(y)|/|x - y| of any margin."""
    with torch.no_grad():
        rise = net(X) - net(Y)
    rise = rise[:, None] if rise.ndim == 1 else rise
    largest = rise.abs() if rise.shape[1] == 1 else rise.amax(dim=1, keepdim=True) - rise.amin(dim=1, keepdim=True)
    return float((largest[:, 0] / (X - Y).norm(dim=1)).amax())


def in_ball(n: int, dim: int, radius: float, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    X = torch.randn(n, dim, generator=rng, dtype=torch.float64)
    return radius * X / X.norm(dim=1, keepdim=True) * torch.rand(n, 1, generator=rng, dtype=torch.float64).pow(1 / dim)


NETS = {
    "relu": PolyReLUNet(6, 30, 1.0, **D64),
    "relu small": PolyReLUNet(3, 7, 1.0, **D64),
    "relu plane": PolyReLUNet(2, 40, 1.0, **D64),
    "p=1.5": PolyReLUNet(6, 20, 1.5, seed=1, **D64),
    "p=2": PolyReLUNet(6, 20, 2.0, seed=2, **D64),
    "p=3, centre": PolyReLUNet(6, 20, 3.0, centre=torch.arange(6.0), bias=True, seed=3, **D64),
    "p=3, classes": PolyReLUNet(6, 20, 3.0, outputs=4, seed=4, **D64),
    "p=3, normalised": PolyReLUNet(6, 20, 3.0, normalise_input=True, seed=5, **D64),
    "p=1, classes": PolyReLUNet(6, 20, 1.0, outputs=3, seed=6, **D64),
    "plain": PlainPolyNet(5, 12, 3.0, **D64),
    "leaky": LeakyReLUNet(5, 12, slope=0.4, **D64),
    "tanh": TanhNet(5, 12, outputs=3, **D64),
    "fixed": FixedOutputNet(5, 6, **D64),
    "grouped": GroupedNet(5, 4, 3, **D64),
    "linear": LogisticRegression(5, 3, scale=1.0, **D64),
    "mlp": MLP(5, 12, 3, bias=True, **D64),
    "mlp gelu": MLP(5, 12, 3, 4, activation="gelu", **D64),
    "mlp sigmoid": MLP(5, 12, 3, activation="sigmoid", **D64),
    "cnn": SmallCNN(6, 3, hidden=8, **D64),
    "sequential": nn.Sequential(
        nn.Linear(5, 9), nn.LeakyReLU(0.2), nn.Linear(9, 7), nn.Tanh(), nn.Linear(7, 3)
    ).double(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("radius", [0.7, 2.0])
def test_no_slope_and_no_chord_exceeds_it(name, radius):
    net = NETS[name]
    dim = getattr(net, "dim", 5)
    centre = getattr(net, "centre", None)
    shift = 0 if centre is None else centre
    X, Y = (shift + in_ball(300 if name == "cnn" else 2000, dim, radius, seed) for seed in (0, 1))
    found = lipschitz(net, radius)
    limit = found.value * (1 + 1e-9)
    assert slopes(net, X) <= limit
    assert chords(net, X, Y) <= limit
    assert chords(net, X, X + 1e-4 * (Y - X)) <= limit
    assert found.attained <= limit
    assert found.radius == radius


@pytest.mark.parametrize("name", ["relu", "p=1.5", "p=2", "p=3, classes", "p=3, normalised", "p=1, classes", "leaky"])
def test_what_is_said_to_be_attained_is_not_too_small(name):
    """Not far below the best of 2000 random points, nor the bound far above it."""
    net = NETS[name]
    X = in_ball(2000, net.dim, 1.0)
    X = X / X.norm(dim=1, keepdim=True)
    found = lipschitz(net, 1.0)
    assert found.attained >= 0.8 * slopes(net, X)
    assert found.value <= 5 * found.attained


@pytest.mark.parametrize("p", EVERY_P)
def test_orthogonal_neurons_exactly(p):
    # |g|^2 = sum a_j^2 s_j^(p-1) over the simplex of s = t^2: a vertex for p >= 2, inside below.
    turn = torch.linalg.qr(torch.randn(12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).Q
    a = [1.0, -2.0, 0.5, 3.0, -1.0, 1.5, 0.1, 2.0, -0.7, 1.1]
    found = lipschitz(net_of(turn[:10], a, p), radius=1.5)
    size = torch.tensor(a, dtype=torch.float64).abs()
    peak = 3.0 if p >= 2 else float(size.pow(2 / (2 - p)).sum()) ** ((2 - p) / 2)
    assert found.value == pytest.approx(p * 1.5 ** (p - 1) * peak, rel=1e-10)
    assert found.kind == "exact"
    # reached: the slope at t_j ~ |a_j|^(1/(2-p)), or along the largest neuron
    t = size.pow(1 / (2 - p)) if p < 2 else (size == 3).double()
    x = 1.5 * t @ turn[:10] / t.norm()
    assert slopes(net_of(turn[:10], a, p), x[None]) == pytest.approx(found.value, rel=1e-10)


@pytest.mark.parametrize("p", EVERY_P)
@pytest.mark.parametrize("normalise_input", [False, True])
def test_one_neuron_exactly(p, normalise_input):
    net = net_of([[3.0, 4.0]], [-2.0], p, normalise_input=normalise_input)  # a = -10
    found = lipschitz(net, 2.0)
    angle = torch.linspace(0, 2 * math.pi, 200_001, dtype=torch.float64)
    ring = 2 * torch.stack([angle.cos(), angle.sin()], dim=1)
    assert found.value == pytest.approx(slopes(net, ring), rel=1e-8)
    assert found.value >= slopes(net, ring) * (1 - 1e-12)
    assert found.kind == "exact"
    if not normalise_input:
        assert found.value == pytest.approx(10 * p * 2 ** (p - 1), rel=1e-12)


def test_f_and_the_centres():
    mixture = OrthonormalMixture(20, 6, 4, 0.1, dtype=torch.float64)
    average = lipschitz(AverageClassifier(mixture.centres, mixture.labels))
    assert average.value == pytest.approx(math.sqrt(10), rel=1e-12)
    assert average.kind == "exact"
    centre = lipschitz(CentreClassifier(mixture.centres, mixture.labels, 3), 1.0)
    assert centre.value == pytest.approx(3, rel=1e-12)
    assert centre.kind == "exact"
    # split neurons are still one
    W = mixture.centres.repeat(2, 1)
    assert lipschitz(net_of(W, [0.5 * float(y) for y in mixture.labels] * 2, 3.0), 1.0).value == pytest.approx(3)


@pytest.mark.slow
def test_few_relus_exactly():
    """Every activation pattern that exists is tried, none that does not: against a fine search."""
    net = NETS["relu small"]
    found = lipschitz(net)
    assert found.kind == "exact"
    X = torch.randn(300_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert found.value == pytest.approx(slopes(net, X), rel=1e-9)  # cells are cones: some point is in the best
    plane = lipschitz(NETS["relu plane"])
    angle = torch.linspace(0, 2 * math.pi, 100_000, dtype=torch.float64)
    ring = torch.stack([angle.cos(), angle.sin()], dim=1)
    assert plane.value == pytest.approx(slopes(NETS["relu plane"], ring), rel=1e-9)
    # u and -u are never open together: 3 |x| has slope 3, not 0 and not 6
    assert lipschitz(net_of([[1.0, 0, 0], [-1.0, 0, 0]], [3.0, 3.0], 1.0)).value == pytest.approx(3)
    leaky = LeakyReLUNet(1, 1, slope=0.25, **D64)
    leaky.weight.data.fill_(2.0)
    leaky.output.data.fill_(-3.0)
    assert lipschitz(leaky).value == pytest.approx(6)


def test_linear_models_exactly():
    line = nn.Linear(3, 1).double()
    assert lipschitz(line).value == pytest.approx(float(line.weight.detach().norm()))
    three = LogisticRegression(2, 3, scale=1.0, **D64)
    three.weight.data.copy_(torch.tensor([[1.0, 0], [0, 1], [-2, 0]]))
    assert lipschitz(three).value == pytest.approx(3)  # classes 0 and 2
    assert lipschitz(three).kind == "exact"


def test_growth_scale_and_order():
    net = PolyReLUNet(4, 9, 3.0, **D64)
    assert lipschitz(net).value == math.inf
    assert lipschitz(net, 2.0).value == pytest.approx(4 * lipschitz(net, 1.0).value)
    assert lipschitz(NETS["p=3, normalised"]).value == lipschitz(NETS["p=3, normalised"], 5.0).value < math.inf
    faint = PolyReLUNet(4, 9, 3.0, scale=1e-100, **D64)
    assert lipschitz(faint, 1.0).value * 1e200 == pytest.approx(lipschitz(net, 1.0).value, rel=1e-8)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    turn = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)).Q
    other = PolyReLUNet(4, 9, 3.0, **D64)
    other.weight.data.copy_((net.weight @ turn)[order])
    other.output.data.copy_(net.output[..., order])
    assert lipschitz(other, 1.0).value == pytest.approx(lipschitz(net, 1.0).value, rel=1e-10)
    assert lipschitz(PolyReLUNet(4, 3, 3.0, init="zeros"), 1.0).value == 0
    twins = PolyReLUNet(4, 9, 3.0, outputs=2, **D64)
    twins.output.data[1] = twins.output.data[0]  # f_0 - f_1 = 0
    assert lipschitz(twins).value == 0


@pytest.mark.parametrize(
    "name", ["relu", "p=1.5", "p=3, centre", "p=3, classes", "p=3, normalised", "leaky", "mlp gelu"]
)
def test_certified_radius_is_never_broken(name):
    """Claim E10: no perturbation of that length (random, or along the gradient) changes the class."""
    net = NETS[name]
    centre = getattr(net, "centre", None)
    X = in_ball(300, net.dim, 2.0) + (0 if centre is None else centre)
    out = net(X).detach()
    y = torch.where(out > 0, 1.0, -1.0).double() if out.ndim == 1 else out.argmax(dim=1)
    radius = lipschitz_radius(net, Dataset(X, y))
    assert (radius > 0).all()
    leaf = X.clone().requires_grad_(True)
    logits = net(leaf)
    top = logits * y if logits.ndim == 1 else logits.topk(2).values.diff(dim=1)[:, 0].neg()
    steep = torch.autograd.grad(top.sum(), leaf)[0]
    rng = torch.Generator().manual_seed(2)
    for d in [-steep, *torch.randn(20, *X.shape, generator=rng, dtype=torch.float64)]:
        Z = X + 0.999999 * radius[:, None] * d / d.norm(dim=1, keepdim=True)
        moved = net(Z).detach()
        same = (moved * y > 0) if moved.ndim == 1 else moved.argmax(dim=1) == y
        assert same.all()


def test_radius_of_ideal_nets():
    mixture = OrthonormalMixture(20, 6, 4, 0.0, dtype=torch.float64)
    data = Dataset(mixture.centres, mixture.labels.double())
    average = lipschitz_radius(AverageClassifier(mixture.centres, mixture.labels), data)
    assert average == pytest.approx(torch.full((10,), 10**-0.5, **D64), rel=1e-12)  # the true radius
    centres = lipschitz_radius(CentreClassifier(mixture.centres, mixture.labels, 3), data)
    assert centres == pytest.approx(torch.full((10,), 2 ** (1 / 3) - 1, **D64), rel=1e-12)
    wrong = Dataset(mixture.centres, -mixture.labels.double())
    assert not lipschitz_radius(AverageClassifier(mixture.centres, mixture.labels), wrong).any()


def test_bad_input_is_refused_in_words():
    with pytest.raises(InputError, match="radius=-1"):
        lipschitz(NETS["relu"], -1)
    deep = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    with pytest.raises(InputError, match="layer 1, BatchNorm1d"):
        lipschitz(deep)
    with pytest.raises(InputError, match="BayesClassifier: expected a net of this package with weights"):
        lipschitz(BayesClassifier(torch.eye(2), torch.tensor([1.0, -1.0])))
    with pytest.raises(InputError, match="labels of another kind"):
        lipschitz_radius(NETS["leaky"], Dataset(torch.randn(3, 5).double(), torch.tensor([0, 1, 2])))


def test_convolution_bound_against_its_matrix():
    weight = torch.randn(3, 2, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    images = torch.eye(2 * 25, dtype=torch.float64).reshape(50, 2, 5, 5)
    matrix = nn.functional.conv2d(images, weight, padding="same").flatten(1)
    true = float(torch.linalg.matrix_norm(matrix, 2))
    assert true <= filter_norm(weight, 5) <= 1.3 * true
