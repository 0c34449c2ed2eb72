"""PolyReLUNet against its formula: values, degrees, gradients, zeros, dtypes."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet, relu_power

POWERS = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 4.2]


def make(p: float = 3.0, outputs: int = 1, **options) -> PolyReLUNet:
    options = {"dtype": torch.float64, "seed": 1, **options}
    return PolyReLUNet(5, 7, p, outputs, **options)


def points(n: int = 6, dim: int = 5, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def naive(net: PolyReLUNet, X: Tensor) -> Tensor:
    """The formula as printed, one number at a time."""
    p, rows = net.p, []
    for x in X.double():
        x = x if net.centre is None else x - net.centre.double()
        logits = []
        for c in range(net.outputs):
            total = 0.0 if net.bias is None else net.bias[c].item()
            for j in range(net.width):
                w = net.weight[j].detach().double()
                z = sum(float(a) * float(b) for a, b in zip(x, w, strict=True))
                unit = max(z, 0.0) ** p / float(w.norm()) ** (p - 1)
                if net.normalise_input:
                    unit /= float(x.norm()) ** (p - 1)
                total += net.output[c, j].item() * unit
            logits.append(total)
        rows.append(logits)
    out = torch.tensor(rows, dtype=torch.float64)
    return out[:, 0] if net.outputs == 1 else out


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("normalise_input", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_forward_is_the_formula(p, outputs, normalise_input, centred):
    centre = torch.full((5,), 0.3) if centred else None
    net = make(p, outputs, normalise_input=normalise_input, centre=centre, bias=centred, init="kaiming")
    torch.testing.assert_close(net(points()), naive(net, points()), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("normalise_input", [False, True])
def test_preprocess_leaves_a_plain_sum_over_unit_directions(p, outputs, normalise_input):
    net = make(p, outputs, normalise_input=normalise_input, centre=torch.ones(5))
    polar = net.polar()
    hidden = relu_power(net.preprocess(points()) @ polar.u.T, p)
    expected = hidden @ (polar.q * polar.log_contributions.exp()[:, None])
    torch.testing.assert_close(net(points()), expected[:, 0] if outputs == 1 else expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("p", POWERS)
def test_degrees_two_in_theta_and_p_in_x(p):
    net, X = make(p), points()
    before = net(X)
    torch.testing.assert_close(net(2.5 * X), 2.5**p * before)
    normalised = make(p, normalise_input=True, centre=torch.ones(5))
    torch.testing.assert_close(normalised(1 + 2.5 * X), 2.5 * normalised(1 + X))
    with torch.no_grad():
        net.weight.mul_(3)
        net.output.mul_(3)
    torch.testing.assert_close(net(X), 9 * before)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 4.2])
@pytest.mark.parametrize("normalise_input", [False, True])
def test_gradients_match_finite_differences(p, normalise_input):
    net = make(p, 2, normalise_input=normalise_input, bias=True, init="balanced")
    X = points(4).requires_grad_()
    with torch.no_grad():
        assert (X @ net.weight.T).abs().min() > 1e-3  # away from the kinks

    def f(X: Tensor, weight: Tensor, output: Tensor) -> Tensor:
        state = {"weight": weight, "output": output}
        return torch.func.functional_call(net, state, (X,))

    weight, output = (t.detach().clone().requires_grad_() for t in (net.weight, net.output))
    assert torch.autograd.gradcheck(f, (X, weight, output))
    assert torch.autograd.gradgradcheck(f, (X, weight, output))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalise_input", [False, True])
def test_zeros_give_zero_and_finite_gradients(p, dtype, normalise_input):
    # x = c, a neuron orthogonal to x (pre-activation exactly 0), a zero neuron: all at once.
    net = make(p, dtype=dtype, normalise_input=normalise_input, centre=torch.ones(5))
    with torch.no_grad():
        net.weight[0] = 0
        net.weight[1] = torch.tensor([0.0, 1, 0, 0, 0])
    X = torch.ones(2, 5, dtype=dtype)
    X[1, 0] = 2
    X.requires_grad_()
    out = net(X)
    assert out[0] == 0
    out.sum().backward()
    for gradient in (X.grad, net.weight.grad, net.output.grad):
        assert gradient.isfinite().all()
    assert net.preprocess(X).isfinite().all()


@pytest.mark.parametrize("p", POWERS)
def test_relu_power_has_finite_second_derivatives_at_zero(p):
    z = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    value = relu_power(z, p)
    torch.testing.assert_close(value.detach(), torch.tensor([0.0, 0.0, 2.0**p]))
    (first,) = torch.autograd.grad(value.sum(), z, create_graph=True)
    torch.testing.assert_close(first.detach(), torch.tensor([0.0, 0.0, p * 2.0 ** (p - 1)]))
    if p > 1:
        (second,) = torch.autograd.grad(first.sum(), z)
        torch.testing.assert_close(second, torch.tensor([0.0, 0.0, p * (p - 1) * 2.0 ** (p - 2)]))


def test_fast_paths_agree_with_the_general_power():
    z = torch.linspace(-2, 3, 101, dtype=torch.float64)
    for p in (1, 2, 3, 4):
        torch.testing.assert_close(relu_power(z, p), z.relu().pow(p), rtol=1e-14, atol=0)


def test_float32_and_float64_of_one_seed_agree():
    single, double = make(dtype=torch.float32), make(dtype=torch.float64)
    assert torch.equal(single.weight, double.weight.float())
    torch.testing.assert_close(single(points().float()).double(), double(points()), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(0, 4),
    dim=st.integers(1, 5),
    width=st.integers(1, 5),
    outputs=st.integers(1, 4),
    p=st.floats(1, 6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    options=st.fixed_dictionaries({"bias": st.booleans(), "normalise_input": st.booleans()}),
    scale=st.floats(1e-300, 10),
)
def test_shapes_and_dtypes(n, dim, width, outputs, p, dtype, options, scale):
    net = PolyReLUNet(dim, width, p, outputs, scale=scale, dtype=dtype, centre=torch.ones(dim), **options)
    out = net(points(n, dim, dtype=dtype))
    assert out.shape == ((n,) if outputs == 1 else (n, outputs))
    assert out.dtype == dtype and out.isfinite().all()
    assert net.log_scale.dtype == torch.float64
    assert net.preprocess(points(n, dim, dtype=dtype)).dtype == dtype


def test_inputs_are_checked():
    net = make()
    for X in (torch.zeros(3, 4), torch.zeros(5), torch.zeros(2, 3, 5)):
        with pytest.raises(InputError, match=r"X of shape .* expected \(n, 5\)"):
            net(X)
    odd = points(dtype=torch.float32), points().to_sparse(), points().to("meta"), points().to(torch.complex128)
    for X in odd:
        with pytest.raises(InputError, match=r"^X=torch\..*: expected a dense torch\.float64 tensor on cpu\.$"):
            net(X)
    for X in (None, points().numpy(), points().tolist(), "X"):
        with pytest.raises(InputError, match=r"^X=(NoneType|ndarray|list|str): expected a tensor \(n, D\)"):
            net(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 0.5}, "p=0.5: expected a finite number >= 1"),
        ({"p": float("nan")}, "p=nan: expected a finite number >= 1"),
        ({"p": "3"}, "p='3': expected a finite number >= 1"),
        ({"dim": 0}, "dim=0: expected a whole number >= 1"),
        ({"width": 2.5}, "width=2.5: expected a whole number >= 1"),
        ({"outputs": True}, "outputs=True: expected a whole number >= 1"),
        ({"scale": 0.0}, "scale=0.0: expected a finite number > 0"),
        ({"scale": float("inf")}, "scale=inf: expected a finite number > 0"),
        ({"seed": -1}, "seed=-1: expected a whole number >= 0"),
        ({"init": "magic"}, "init='magic': expected 'gaussian' or 'balanced' or"),
        ({"dtype": torch.float16}, "dtype=torch.float16: expected torch.float32 or torch.float64"),
        ({"centre": torch.zeros(4)}, r"centre.shape=\(4,\): expected \(5,\)"),
        ({"centre": torch.tensor([0, 0, 0, 0, float("nan")])}, "centre=NaN or inf: expected finite numbers"),
        ({"init": "nudged"}, r"centres=None: expected \(K, 5\)"),
        ({"init": "nudged", "centres": torch.eye(4)}, r"centres=shape \(4, 4\): expected \(K, 5\)"),
        ({"init": "nudged", "centres": torch.eye(5), "nudge": 2.0}, "nudge=2.0: expected a fraction"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(InputError, match=message):
        PolyReLUNet(**{"dim": 5, "width": 7, **options})


def test_config_is_json_and_complete():
    net = make(2.5, 3, bias=True, centre=torch.ones(5), scale=1e-300, init="balanced", seed=9)
    config = json.loads(json.dumps(net.config()))
    assert config == net.config()
    assert config == {
        "dim": 5, "width": 7, "p": 2.5, "outputs": 3, "bias": True, "centre": True, "normalise_input": False,
        "dtype": "float64", "init": "balanced", "scale": 1e-300, "seed": 9, "nudge": 0.05,
    }  # fmt: skip
    again = PolyReLUNet.restore(config, net.state_dict())
    assert again.config() == config
    assert torch.equal(again(points()), net(points()))


def test_state_dict_and_deepcopy_keep_the_function():
    net = make(scale=1e-20, dtype=torch.float32)
    other = make(seed=8, dtype=torch.float32)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other.log_contributions(), net.log_contributions())
    assert torch.equal(copy.deepcopy(net).log_contributions(), net.log_contributions())


def test_optimiser_steps_change_the_net():
    net = make(dtype=torch.float32, scale=0.5)
    X, y = points(dtype=torch.float32), torch.tensor([1.0, -1, 1, -1, 1, -1])
    optimiser = torch.optim.SGD(net.parameters(), lr=0.5)
    losses = []
    for _ in range(50):
        optimiser.zero_grad()
        loss = torch.nn.functional.softplus(-y * net(X)).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_runs_under_vmap_and_per_sample_gradients():
    net = make()
    gradients = torch.func.vmap(torch.func.grad(lambda x: net(x[None])[0]))(points())
    X = points().requires_grad_()
    net(X).sum().backward()
    torch.testing.assert_close(gradients, X.grad)
