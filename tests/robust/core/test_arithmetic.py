"""What execution in float32 or float64 adds to a net is counted: bounds hold for the logits as they are computed."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from polyrelu import Budget, PolyReLUClassifier, bracket
from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import EXECUTED, QUICK_DIRECTIONS, REAL, linear_radius, quadratic_radius, root_lipschitz_radius
from polyrelu.robust.core import arithmetic_of
from polyrelu.robust.core.scaled_net import ScaledNet

FLOATS = list(EXECUTED)


def net_of(p, outputs, dtype, *, dim=40, width=25, seed=0, whole=True, far=1.0):
    draw = torch.Generator().manual_seed(seed)
    more = {"centre": far * torch.randn(dim, generator=draw), "bias": True, "normalise_input": seed % 2 == 1}
    net = PolyReLUNet(dim, width, p, outputs, seed=seed, dtype=dtype, **(more if whole else {}))
    if net.bias is not None:
        net.bias.data.copy_(torch.randn(outputs, generator=draw))
    X = 2 * torch.randn(30, dim, generator=draw, dtype=torch.float64)
    return net, (X if net.centre is None else X + net.centre.double())


def label_of(logits):
    return torch.where(logits > 0, 1.0, -1.0) if logits.ndim == 1 else logits.argmax(dim=1)


def margins(logits, label):
    """Against each rival, (n, c)."""
    if logits.ndim == 1:
        return label * logits[:, None]
    keep = [c for c in range(logits.shape[1]) if c != int(label)]
    return logits[:, [int(label)]] - logits[:, keep]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("p", [1, 2, 2.2, 3, 4, 7.5])
def test_the_counted_errors_cover_logits_as_executed_and_little_more(dtype, outputs, p):
    for seed in range(4):
        net, X = net_of(p, outputs, dtype, seed=seed)
        real, run = ScaledNet.from_net(net), ScaledNet.from_net(net, EXECUTED[dtype])
        placed = run.place(X, 2.0)
        with torch.no_grad():
            executed = torch.cat([net(part.to(dtype)) for part in X.split([1, 2, 27])]).double()
        for label in (1.0, -1.0) if outputs == 1 else range(outputs):
            rivals, plain = run.rivals(label), real.rivals(label)
            A, blur = rivals.A, placed.blur[:, None]
            up, down = (placed.T + blur).relu() ** p, (placed.T - blur).relu() ** p
            lift = placed.length[:, None] ** (p - 1) if run.normalised else 1.0
            least = down @ A.clamp(min=0).T + up @ A.clamp(max=0).T
            least = least + lift * run.scaled_bias(rivals.beta, rivals.size, placed.scale)
            unit = rivals.size * math.exp(run.log_unit)
            found = margins(executed, label) / unit * lift / placed.scale[:, None] ** (1 if run.normalised else p)
            assert (least <= found).all()
            size = (placed.T.relu() ** p) @ plain.A.abs().T * plain.size / rivals.size + lift * rivals.beta.abs()
            mass = size + (p * (placed.T + blur).relu() ** (p - 1)) @ plain.A.abs().T
            assert (found - least <= 3e3 * EXECUTED[dtype].unit * (mass + 3 * p)).all()


def test_the_counts_are_those_of_the_docstring():
    net, _ = net_of(3, 1, torch.float32, dim=100, width=50)
    u = 2.0**-24
    run = ScaledNet.from_net(net, EXECUTED[torch.float32]).run
    assert run.relative == pytest.approx((50 + 6 * 3 + 32) * u, rel=1e-3)
    assert run.blur == pytest.approx((100 + 12) * u, rel=1e-3)
    assert run.shifted == pytest.approx(2 * u * float(net.centre.double().norm()), rel=1e-3)
    odd = ScaledNet.from_net(net_of(2.2, 1, torch.float32, width=50)[0], EXECUTED[torch.float32]).run
    assert odd.relative == pytest.approx((50 + 96 * 2.2 + 32) * u, rel=1e-3)
    other = ScaledNet.from_net(net_of(3, 1, torch.float64, dim=100, width=50)[0], EXECUTED[torch.float64]).run
    assert other.relative == pytest.approx((50 + 18 + 32 + 108) * 2.0**-53, rel=1e-3)
    assert other.blur == pytest.approx((2 * 100 + 20) * 2.0**-53, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("p, outputs, seed", [(1, 1, 0), (2, 3, 1), (3, 1, 0), (4, 3, 0)])
def test_executed_radii_are_a_little_shorter_than_real_ones(p, outputs, seed, norm):
    net, X = net_of(p, outputs, torch.float32, dim=12, seed=seed)
    exact, X = PolyReLUNet.restore(net.config(), net.state_dict()).double(), X[:10]
    with torch.no_grad():
        y = label_of(exact(X))
    proofs = [root_lipschitz_radius, linear_radius]
    if norm == 2:
        proofs.append(lambda net, X, y, norm, arithmetic: quadratic_radius(net, X, y, tol=1e-3, arithmetic=arithmetic))
        proofs.append(lambda *args, arithmetic: bracket(*args[:3], budget=Budget(nodes=0), arithmetic=arithmetic).lower)
    for prove in proofs:
        real = prove(exact, X, y, norm, arithmetic="real")
        clear = real > 0.05
        assert clear.sum() > 2
        for name, most in (("float32", 2e-3), ("float64", 1e-6)):
            shorter = prove(exact, X, y, norm, arithmetic=name)
            assert (shorter <= real * (1 + 0.01)).all()  # searches end within a tolerance
            assert (shorter[clear] >= real[clear] * (1 - most - 0.01)).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_net_that_overflows_or_underflows_when_executed_is_not_proven(dtype):
    arithmetic = EXECUTED[dtype]
    net = PolyReLUNet(2, 2, 3.0, init="zeros", dtype=dtype)
    net.weight.data.copy_(torch.eye(2))
    net.output.data.copy_(torch.tensor([[1.0, -1.0]]))
    X, y = torch.tensor([[1.0, 0.2]], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    exact = PolyReLUNet.restore(net.config(), net.state_dict()).double()
    assert root_lipschitz_radius(exact, X, y, arithmetic=arithmetic) > 0.5
    large = 2 * arithmetic.most ** (1 / 3)
    for scale in (large, 1e-3 * arithmetic.least ** (1 / 3)):
        with torch.no_grad():
            f = float(net((scale * X).to(dtype)))
        assert not 0 < f < math.inf or scale < 1
        for prove in (root_lipschitz_radius, linear_radius, quadratic_radius):
            assert prove(exact, scale * X, y, arithmetic=arithmetic) <= (0 if scale > 1 else scale)
    far = root_lipschitz_radius(exact, 0.1 * large * X, y, arithmetic=arithmetic)
    assert 0 < far <= large


def test_a_bracket_names_its_arithmetic():
    net, X = net_of(3, 3, torch.float32, dim=6, whole=False)
    exact = PolyReLUNet.restore(net.config(), net.state_dict()).double()
    y = label_of(exact(X))
    assert bracket(exact, X[:2], y[:2]).arithmetic == "real"
    assert bracket(exact, X[:2], y[:2], arithmetic="float32").arithmetic == "float32"
    assert arithmetic_of(REAL) is REAL and arithmetic_of("float64") is EXECUTED[torch.float64]
    for bad, expected in (("float16", "'real' or 'float32' or 'float64'"), (3, "an Arithmetic or a text")):
        with pytest.raises(InputError, match=expected):
            bracket(exact, X[:2], y[:2], arithmetic=bad)


@pytest.mark.slow
def test_a_head_is_proven_as_it_predicts():
    draw = np.random.default_rng(0)
    X = np.concatenate([draw.normal(size=(40, 5)) + 3 * np.eye(5)[k] for k in range(3)])
    y = np.repeat([0, 1, 2], 40)
    head = PolyReLUClassifier(p=3, random_state=0).fit(X, y)
    rows, labels = torch.from_numpy(X[:8]), torch.from_numpy(head.predict(X[:8]))
    found, plain = head.certify(X[:8]), bracket(head.net_, rows, labels, widest=QUICK_DIRECTIONS)
    assert found.arithmetic == str(head.net_.dtype).removeprefix("torch.")
    assert (found.lower <= plain.lower * (1 + 1e-2)).all() and (found.lower >= plain.lower * 0.99).all()
    alone = PolyReLUClassifier(p=3, random_state=0).fit(X.astype(np.float32), y)
    assert alone.certify(X[:2]).arithmetic == "float32"


def test_a_tie_within_rounding_is_not_proven():
    # Two equal and opposite neurons of 1000 inputs: f is what rounding leaves, real f is 2^-40 of its terms
    D = 1000
    net = PolyReLUNet(D, 2, 1.0, init="zeros", dtype=torch.float32)
    w = torch.rand(D, generator=torch.Generator().manual_seed(0))
    net.weight.data.copy_(torch.stack([w, w]))
    net.output.data.copy_(torch.tensor([[1.0, -1.0 + 2.0**-24]]))
    X, y = torch.rand(1, D, generator=torch.Generator().manual_seed(1)).double(), torch.ones(1, dtype=torch.float64)
    exact = PolyReLUNet.restore(net.config(), net.state_dict()).double()
    real = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(w, X[0], strict=True)) * Fraction(1, 2**24)
    assert real > 0 and root_lipschitz_radius(exact, X, y) > 0
    for prove in (root_lipschitz_radius, linear_radius, quadratic_radius):
        assert prove(exact, X, y, arithmetic="float32") == 0


def test_a_head_predicts_in_its_own_arithmetic_also_under_autocast():
    """In bfloat16 near ties fall otherwise."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(4000, 8)).astype(np.float32)
    head = PolyReLUClassifier(width=12, epochs=2, random_state=0).fit(X[:200], X[:200, 0] * X[:200, 1] > 0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = head.decision_function(X)
        assert (head.net_(torch.from_numpy(X)).float().detach().numpy() != scores).any()
    np.testing.assert_array_equal(scores, head.decision_function(X))


def test_no_radius_of_a_normalised_net_as_executed_is_above_three_lengths():
    net = PolyReLUNet(3, 4, 3.0, normalise_input=True, dtype=torch.float32)
    radius, length = torch.tensor([1e9, 1.0]).double(), torch.ones(2).double()  # `scaled_bias` counts |x + d| <= 4 |x|
    cut = ScaledNet.from_net(net, EXECUTED[torch.float32]).rounded_down(radius, length, 2.0)
    assert 3 * (1 - 1e-9) < cut[0] <= 3 and cut[1] == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bias_near_the_largest_number_leaves_no_room_whatever_its_sign(sign):
    net = PolyReLUNet(3, 4, 3.0, bias=True, dtype=torch.float32)
    with torch.no_grad():
        net.bias.fill_(sign * torch.finfo(torch.float32).max / 8)
    assert ScaledNet.from_net(net, EXECUTED[torch.float32]).run.longest == 0
