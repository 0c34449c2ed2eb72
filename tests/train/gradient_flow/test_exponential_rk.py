"""The embedded pair: phi functions, observed order, stiffness, the quadrature of time."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import torch

from polyrelu.nets import PolyReLUNet
from polyrelu.train.gradient_flow.exponential_rk import PolarPoint, StepUnderflowError, exponential_kutta, march, phi
from polyrelu.train.gradient_flow.polar_field import Field, PolarState
from polyrelu.train.losses import log_mean_exp

F64 = torch.float64


@pytest.mark.parametrize("z", [0.0, -1e-9, -1e-3, -0.29, -0.31, -1.0, -30.0, -1e5])
def test_phi_functions_against_high_precision(z):
    mpmath.mp.dps = 40
    found = [float(v) for v in phi(torch.tensor([z], dtype=F64))]
    for k, value in enumerate(found, start=1):
        x = mpmath.mpf(z)
        rest = mpmath.e**x - mpmath.fsum(x**i / mpmath.factorial(i) for i in range(k))
        exact = rest / x**k if z else 1 / mpmath.factorial(k)
        assert value == pytest.approx(float(exact), rel=1e-12)


def smooth_field(p=3.0, loss="squared"):
    """Three neurons that every sample activates, so that nothing has a kink."""
    generator = torch.Generator().manual_seed(0)
    X = 1 + 0.3 * torch.randn(12, 5, generator=generator, dtype=F64)
    X = X / X.norm(dim=1, keepdim=True)
    y = torch.where(torch.arange(12) < 6, 1.0, -1.0).to(F64)
    net = PolyReLUNet(5, 3, p, init="zeros", dtype=F64)
    net.weight.data = 0.3 * (0.4 + torch.rand(3, 5, generator=generator, dtype=F64))
    net.output.data = torch.tensor([[0.3, -0.2, 0.25]], dtype=F64)
    field = Field(lambda a, b: X[a:b], y, loss=loss, p=p)
    state = PolarState.from_polar(net.polar(), torch.zeros(1, dtype=F64))
    return field, PolarPoint(0.0, -math.inf, state, field(state))


def run(field, point, steps, p, span=1.0):
    for _ in range(steps):
        point, _ = exponential_kutta(lambda s, _: field(s), point, span / steps, p)
    return point


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 4.5])
def test_observed_order_is_three(p):
    field, start = smooth_field(p)
    fine = run(field, start, 640, p)
    gaps = []
    for steps in (20, 40):
        end = run(field, start, steps, p)
        gaps.append(float((end.state.u - fine.state.u).norm() + (end.state.kappa - fine.state.kappa).norm()))
    assert math.log2(gaps[0] / gaps[1]) == pytest.approx(3, abs=0.25)


def test_estimated_error_is_that_of_the_second_order_rule():
    field, start = smooth_field()
    sizes = [exponential_kutta(lambda s, _: field(s), start, dt, 3.0)[1] for dt in (0.04, 0.02)]
    assert math.log2(sizes[0] / sizes[1]) == pytest.approx(3, abs=0.2)  # local error of order 2 + 1


def test_arrived_directions_do_not_limit_the_step():
    # One tiny neuron a degree off its attractor: an explicit pair must keep c dt below 2.5 for ever. Here the step
    # grows without bound and the direction still contracts.
    X = torch.eye(2, dtype=F64)[:1]
    field = Field(lambda a, b: X[a:b], torch.ones(1, dtype=F64), loss="exp", p=3.0)
    net = PolyReLUNet(2, 1, 3.0, init="zeros", dtype=F64)
    net.weight.data = 1e-200 * torch.tensor([[math.cos(0.02), math.sin(0.02)]], dtype=F64)
    net.output.data = torch.tensor([[1e-200]], dtype=F64)
    state = PolarState.from_polar(net.polar(), torch.zeros(1, dtype=F64))
    start = PolarPoint(0.0, -math.inf, state, field(state))
    points = [p for p, _ in march(lambda s, _: field(s), start, p=3.0, tol=1e-4, dt=1.0, end=400.0)]
    assert len(points) < 25
    assert abs(float(points[-1].state.u[0, 1])) < 1e-8
    assert float(points[-1].state.kappa) - float(state.kappa) == pytest.approx(400, abs=0.02)


@pytest.mark.slow
def test_quadrature_of_time_against_numerical_integration():
    for values in ((0.0, 0.3, 1.0), (5.0, 5.0, 5.0), (-3.0, 2.0, -1.0), (0.0, 100.0, 400.0)):
        start, middle, end = (mpmath.mpf(v) for v in values)

        def g(x, start=start, middle=middle, end=end):
            return start * (2 * x - 1) * (x - 1) + middle * 4 * x * (1 - x) + end * x * (2 * x - 1)

        exact = mpmath.log(mpmath.quad(lambda x: mpmath.e ** g(x), mpmath.linspace(0, 1, 12)))
        assert log_mean_exp(*values) == pytest.approx(float(exact), abs=5e-3)
    assert math.isnan(log_mean_exp(0.0, math.inf, 0.0))


def test_a_field_that_is_not_a_number_ends_in_an_underflow_not_in_a_loop():
    _, start = smooth_field()
    broken = replace(start.slope, kappa=start.slope.kappa * math.nan)
    with pytest.raises(StepUnderflowError):
        next(march(lambda _s, _t: broken, start, p=3.0, tol=1e-3, dt=1.0))


def test_step_lands_on_its_end():
    field, start = smooth_field()
    points = [p for p, _ in march(lambda s, _: field(s), start, p=3.0, tol=1e-3, dt=0.013, end=0.7)]
    assert points[-1].tau == 0.7
    assert np.all(np.diff([p.tau for p in points]) > 0)
