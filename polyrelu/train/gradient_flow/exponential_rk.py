"""An embedded exponential Runge-Kutta pair, 3(2), with steps chosen by their estimated error.

A direction that has arrived contracts, u' = G - <u, G> u, at the rate c = <u, G>: explicit steps could never be
longer than 2.5/c. So c is frozen over a step and integrated exactly (Cox & Matthews 2002, with Kutta's third-order
rule; c = 0 gives that rule itself). With z = -c dt, N(u) = u' + c u, and phi_1, phi_2, phi_3 of z:

    a  = e^(z/2) u + dt/2 phi_1(z/2) N(u),   b = e^z u + dt phi_1 (2 N(a) - N(u))
    u+ = e^z u + dt [(phi_1 - 3 phi_2 + 4 phi_3) N(u) + (4 phi_2 - 8 phi_3) N(a) + (4 phi_3 - phi_2) N(b)]
    error = dt (4 phi_3 - phi_2) (N(u) - 2 N(a) + N(b)),  the distance to the embedded second-order rule

Any c >= 0 is consistent; p kappa' s/r for u and kappa' r/s for q are the true ones. Each stage is put back on the
sphere, which keeps the order. Log norms and biases have c = 0. Flow time, dt = d tau / rate, is a quadrature in log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polyrelu.train.gradient_flow.polar_field import PolarState, Slope, error_size, unit
from polyrelu.train.losses import log_add, log_mean_exp

ORDER = 3


class StepUnderflowError(ArithmeticError):
    """The step needed to keep the tolerance is below what the clock resolves."""


@dataclass(frozen=True)
class PolarPoint:
    """A point of a flow: clock ``tau``, ``log t``, the state and its slope."""

    tau: float
    log_t: float
    state: PolarState
    slope: Slope

    @property
    def log_loss(self) -> float:
        """Natural log of the mean loss."""
        return self.slope.log_loss

    @property
    def accuracy(self) -> float:
        """Accuracy, which a surrogate may only estimate."""
        return min(1.0, max(0.0, self.slope.accuracy))

    @property
    def margin(self) -> float:
        """The smallest margin of a sample."""
        return self.slope.margin


Forced = Callable[[PolarState, float], Slope]  # slope at a state and a clock reading
Cut = Callable[[PolarPoint, PolarPoint], float]  # fraction of a step to keep, to land on something


def phi(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """phi_k(z) = sum_i z^i / (i + k)! for k = 1, 2, 3 and z <= 0: recursion, and the series near 0."""
    small = z.abs() < 0.3
    safe = torch.where(small, -torch.ones_like(z), z)
    one = torch.expm1(safe) / safe
    two = (one - 1) / safe
    three = (two - 0.5) / safe
    series = torch.zeros_like(z)
    for i in range(12, -1, -1):  # phi_3 by Horner, the others from it
        series = series * z + 1 / math.factorial(i + 3)
    near = (series, series * z + 0.5, (series * z + 0.5) * z + 1)
    return torch.where(small, near[2], one), torch.where(small, near[1], two), torch.where(small, near[0], three)


class Exponential:
    """Stages of the pair for rows x on spheres whose contraction rate c (h,) is frozen over a step dt."""

    def __init__(self, x: Tensor, rate: Tensor, slope: Tensor, dt: float) -> None:
        self.x, self.dt = x, dt
        z = -rate * dt
        one, two, three = phi(z)
        columns = [z.exp(), (z / 2).exp(), one, phi(z / 2)[0], two, three, rate]
        self.full, self.half, self.one, self.one_half, self.two, self.three, self.rate = (
            column.to(x.dtype)[:, None] for column in columns
        )
        self.n0 = slope + self.rate * x

    def first(self) -> Tensor:
        """Stage a, at dt/2."""
        return unit(self.half * self.x + (self.dt / 2 * self.one_half) * self.n0)

    def second(self, a: Tensor, slope: Tensor) -> Tensor:
        """Stage b, at dt."""
        self.na = slope + self.rate * a
        return unit(self.full * self.x + (self.dt * self.one) * (2 * self.na - self.n0))

    def end(self, b: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
        """The new rows and their estimated error."""
        nb = slope + self.rate * b
        last = 4 * self.three - self.two
        bent = self.n0 - 2 * self.na + nb
        new = self.full * self.x + self.dt * (
            (self.one - 2 * self.two) * self.n0 + 2 * self.two * self.na + last * bent
        )
        return unit(new), (self.dt * last) * bent


def exponential_kutta(field: Forced, point: PolarPoint, dt: float, p: float) -> tuple[PolarPoint, float]:
    """One step of the pair: the new point and the size of its estimated error."""
    y, tau, k0 = point.state, point.tau, point.slope
    ratio = y.balance.ratio(y.kappa)
    u = Exponential(y.u, (p * k0.kappa * ratio).clamp(min=0), k0.u, dt)
    q = Exponential(y.q, (k0.kappa / ratio).clamp(min=0), k0.q, dt) if y.q.shape[1] > 1 else None

    def stage(u_row: Tensor, q_row: Tensor, kappa: Tensor, bias: Tensor) -> PolarState:
        return replace(y, u=u_row, q=q_row, kappa=kappa, bias=bias)

    a = stage(u.first(), q.first() if q else y.q, y.kappa + dt / 2 * k0.kappa, y.bias + dt / 2 * k0.bias)
    ka = field(a, tau + dt / 2)
    b = stage(
        u.second(a.u, ka.u),
        q.second(a.q, ka.q) if q else y.q,
        y.kappa + dt * (2 * ka.kappa - k0.kappa),
        y.bias + dt * (2 * ka.bias - k0.bias),
    )
    kb = field(b, tau + dt)
    bent_kappa, bent_bias = k0.kappa - 2 * ka.kappa + kb.kappa, k0.bias - 2 * ka.bias + kb.bias
    new_u, error_u = u.end(b.u, kb.u)
    new_q, error_q = q.end(b.q, kb.q) if q else (y.q, torch.zeros_like(y.q))
    new = stage(new_u, new_q, y.kappa + dt * (ka.kappa + bent_kappa / 6), y.bias + dt * (ka.bias + bent_bias / 6))
    error = error_size(new.importance(), error_u, error_q, dt / 6 * bent_kappa, dt / 6 * bent_bias)
    end = field(new, tau + dt)
    passed = math.log(dt) + log_mean_exp(-k0.log_rate, -ka.log_rate, -end.log_rate)
    return PolarPoint(tau + dt, log_add(point.log_t, passed), new, end), error


def march(
    field: Forced,
    point: PolarPoint,
    *,
    p: float,
    tol: float,
    dt: float,
    end: float = math.inf,
    cut: Cut | None = None,
) -> Iterator[tuple[PolarPoint, float]]:
    """Accepted points from ``point`` on, up to ``tau = end``, each with the step to try next.

    ``cut(old, new)`` may ask for a shorter step, as a fraction of this one, to land on something: a time, a loss.
    """
    while point.tau < end:
        dt = min(dt, end - point.tau)
        if not dt > max(1e-13 * point.tau, 1e-290):
            raise StepUnderflowError
        new, error = exponential_kutta(field, point, dt, p)
        if not math.isfinite(error + new.log_t):
            dt /= 10
            continue
        fraction = cut(point, new) if cut and error <= tol else 1.0
        if fraction < 1:
            dt *= fraction
            continue
        growth = 0.9 * (tol / max(error, 1e-300)) ** (1 / ORDER)
        if error <= tol:
            last = math.isfinite(end) and end - new.tau <= 1e-12 * max(1.0, end)
            point = PolarPoint(end, new.log_t, new.state, new.slope) if last else new
            dt *= min(5.0, max(0.3, growth))
            yield point, dt
        else:
            dt *= min(0.9, max(0.1, growth))
