"""The end of training: the flow in loss time, by steps that are implicit in the margins.

    theta' = -grad log L = sum_k p_k grad q_k,   p = softmax(-q)      (exp loss; the others to relative 1e-3 or better)

    theta+ = theta + dt sum_k p_k grad q_k(theta),   p = softmax(-(q + dt G p)),   G_kl = <grad q_k, grad q_l>

Once the data are separated, margins q go to thousands while their weights p still switch when q changes by one: an
explicit step chatters between the constraints near the margin. Here p is that of the end of the step (linearised),
so steps are limited by how theta turns, and log10 L = -1000 is some dozen of them away. Only constraints near the
margin enter, the m heaviest; others keep their weights and gradients of the beginning of the step. p is the
minimum of the convex log sum exp(-(q + K t)) + t K t / 2, K = dt G, by Newton's method in m variables. One step and
two of half its length give the error and, extrapolated, a result of second order. A step that lowers the smoothed
margin of a homogeneous net is none of the flow (Lyu & Li 2020, Thm 4.1): it is taken again, shorter.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

import polyrelu.train.margin_gradients as gradients
from polyrelu.data import BLOCK, Dataset
from polyrelu.nets import Polar
from polyrelu.train.gradient_flow.separated_forces import end_forces
from polyrelu.train.losses import class_margins, log_add, log_mean_exp, log_softplus
from polyrelu.train.margin_gradients import Gates, gate_planes, gram_with_gates, has_free_gates

SEPARATED = math.log(1e-3)  # summed loss from which on the margins decide
NEAR_MARGIN = 12.0  # constraints this far above the smallest margin are offered to a step
NOTICED_WEIGHT = 1e-5  # a constraint that turns out to have this weight should have been offered
MAX_REST_WEIGHT = 0.1  # share of the weight that may lie with constraints beyond MAX_CONSTRAINTS
MAX_GATES = 400  # unknown gates of a step
MAX_RETRIES = 7  # of a step, with constraints or gates that it had missed
PINNED = 2e-4  # gates this near to their neuron's plane, relative, are unknowns from the beginning
GATE_WEIGHT = 1e-4  # weight of the constraints whose gates are
MAX_CONSTRAINTS = {True: 1500, False: 400}  # constraints of a step: gradients in closed form, or by autograd


def ready(net: nn.Module, data: Dataset, log_loss: float) -> bool:
    """Whether few enough constraints matter: one forward pass if the loss is low enough, else nothing."""
    if log_loss + math.log(len(data)) > SEPARATED * (1 - 1e-3):
        return False
    weights = torch.softmax(-all_margins(copy.deepcopy(net).double(), data).flatten(), 0)
    rest = weights.sort(descending=True).values[MAX_CONSTRAINTS[gradients.closed_form(net)] :]
    return float(rest.sum()) <= MAX_REST_WEIGHT


def all_margins(net: nn.Module, data: Dataset) -> Tensor:
    """q of every sample and rival, float64, (n, 1) or (n, C)."""
    found = []
    with torch.no_grad():
        for start, X in data.blocks(BLOCK):
            f = torch.cat([net(part) for part in torch.split(X.double(), gradients.chunk(net))])
            y = data.y[start : start + len(X)]
            found.append(class_margins(f[:, None] if f.ndim == 1 else f, y.double() if data.binary else y))
    return torch.cat(found)


@dataclass(frozen=True, eq=False)
class SeparatedState:
    """A point of the separated phase; it is a `Weights`.

    The net in float64, its margins q (n, C), clock and log flow time, and the weights (n, C) of the constraints.
    """

    net: nn.Module
    names: tuple[str, ...]
    q: Tensor
    loss: str
    tau: float
    log_t: float
    weights: Tensor

    @cached_property
    def polar(self) -> Polar | None:
        """The neurons of a PolyReLUNet."""
        return gradients.neurons(self.net)

    @cached_property
    def log_sum(self) -> float:
        """Log of the summed loss."""
        a = (-self.q).logsumexp(1)
        return float((a if self.loss == "exp" else log_softplus(a)).logsumexp(0))

    @property
    def log_loss(self) -> float:
        """Natural log of the mean loss."""
        return self.log_sum - math.log(len(self.q))

    @property
    def accuracy(self) -> float:
        """Share of samples whose margins are all positive."""
        return float((self.q > 0).all(dim=1).double().mean())

    @property
    def margin(self) -> float:
        """The smallest margin."""
        return float(self.q.min())

    @cached_property
    def log_rho(self) -> float:
        """log |theta|."""
        weights = gradients.theta(self).values()
        return 0.5 * math.log(sum(float(weight.square().sum()) for weight in weights))

    def log_smoothed(self, degree: float) -> float:
        """Log of the smoothed margin l^-1(S) / rho^L; the inverse of the logistic loss is -log(e^S - 1)."""
        z = math.exp(min(self.log_sum, 0.0))
        inverse = -self.log_sum if self.loss == "exp" else -(self.log_sum + math.log(math.expm1(z) / z if z else 1.0))
        return math.log(inverse) - degree * self.log_rho


class SeparatedStepper:
    """Steps of the module docstring on one data set; ``work`` counts passes over it."""

    def __init__(self, data: Dataset, degree: float | None) -> None:
        self.data, self.degree, self.work = data, degree, 0.0
        self.unknown_gates = False  # whether gates are unknowns: slower, so only where steps fail without

    def step(self, state: SeparatedState, dt: float) -> tuple[SeparatedState, float]:
        """Two half steps, extrapolated with one whole step, and how far apart they are relative to |theta|."""
        near = self.tangent(state, state.weights)
        whole, half = self.move(state, near, dt), self.move(state, near, dt / 2)
        end = self.move(half, self.tangent(half, half.weights), dt / 2)
        mine, other = dict(end.net.named_parameters()), dict(whole.net.named_parameters())
        apart = {name: mine[name].detach() - other[name].detach() for name in state.names}
        with torch.no_grad():
            for name, gap in apart.items():
                mine[name].add_(gap)
        end = replace(end, q=all_margins(end.net, self.data), tau=state.tau + dt)
        self.work += 1
        passed = math.log(dt) + log_mean_exp(-state.log_loss, -half.log_loss, -end.log_loss)
        end = replace(end, log_t=log_add(state.log_t, passed))
        return end, length(apart) / math.exp(end.log_rho)

    def move(self, state: SeparatedState, near: Tangent, dt: float) -> SeparatedState:
        """One step; constraints and gates that were not offered but turn out to matter are, and it is taken again."""
        new, p = self.try_step(state, near, dt)
        for _ in range(MAX_RETRIES):
            more = self.with_missed(state, near, new, p)
            if more is None:
                break
            near = more
            new, p = self.try_step(state, near, dt)
        full = torch.zeros_like(new.q).flatten()
        full[near.chosen] = p
        return replace(new, weights=full.view_as(new.q))

    def try_step(self, state: SeparatedState, near: Tangent, dt: float) -> tuple[SeparatedState, Tensor]:
        """The end of a step with the constraints and gates of ``near``, margins counted anew, and their weights p."""
        p, s = self.forces(near, dt)
        new = self.moved(state, near, dt, p, s)
        self.work += 1
        return replace(new, q=all_margins(new.net, self.data)), p

    def with_missed(self, state: SeparatedState, near: Tangent, new: SeparatedState, p: Tensor) -> Tangent | None:
        """``near`` with the constraints, or else the gates, that matter at the end ``new`` too; None if it has them."""
        missed = torch.softmax(-new.q.flatten(), 0) > NOTICED_WEIGHT
        missed[near.chosen] = False
        if missed.any() and near.rest is None:
            extra = near.start.clone().flatten()
            extra[missed] = NOTICED_WEIGHT
            return self.tangent(state, extra.view_as(new.q), torch.cat([near.chosen, missed.nonzero()[:, 0]]))
        pairs = crossed(state, new, near, p) if self.unknown_gates and has_free_gates(state) else None
        if pairs is None:
            return None
        found = Gates.from_pairs(state, near.X, near.E, pairs)
        return replace(near, gates=found, G=gram_with_gates(state, near.X, near.E, found))

    def tangent(self, state: SeparatedState, start: Tensor, chosen: Tensor | None = None) -> Tangent:
        """Gradients of the constraints near the margin; ``start`` (n, C): weights to begin with."""
        flat, most = state.q.flatten(), MAX_CONSTRAINTS[gradients.closed_form(state.net)]
        if chosen is None:
            chosen = ((flat <= flat.min() + NEAR_MARGIN) | (start.flatten() > NOTICED_WEIGHT)).nonzero()[:, 0]
        rest, share, drift = None, 0.0, torch.zeros(())
        if len(chosen) > most:
            chosen = chosen[flat[chosen].argsort(stable=True)]
            chosen, others = chosen[:most], chosen[most:]
            weights = torch.softmax(-flat, 0)[others]
            share = float(weights.sum())
            X, E = gradients.constraints(self.data, others, state.q.shape[1])
            rest = gradients.total(state, X, E * weights[:, None])
            self.work += len(others) / len(flat)
        X, E = gradients.constraints(self.data, chosen, state.q.shape[1])
        if rest is not None:
            small = 1e-6 * math.exp(state.log_rho) / length(rest)
            with torch.no_grad():
                f = (changed(state.net, rest, small)(X) - state.net(X)) / small
            drift = (f.reshape(E.shape) * E).sum(dim=1)
        self.work += len(chosen) / len(flat)
        found = pinned(state, X, E, start.flatten()[chosen]) if self.unknown_gates and has_free_gates(state) else None
        G = gradients.gram(state, X, E) if found is None else gram_with_gates(state, X, E, found)
        return Tangent(chosen, X, E, flat[chosen], G, start, found, rest, share, drift)

    def forces(self, near: Tangent, dt: float) -> tuple[Tensor, Tensor]:
        """Weights, and forces through gates, at the end of a step."""
        start = near.start.flatten()[near.chosen]
        start = start / start.sum() if float(start.sum()) > 0 else torch.softmax(-near.q, 0)
        mine = 1 - near.share
        p, s = end_forces(near.q + dt * near.drift, dt * mine * near.G, start, near.gates)
        return mine * p, mine * s

    def moved(self, state: SeparatedState, near: Tangent, dt: float, p: Tensor, s: Tensor) -> SeparatedState:
        """theta + dt sum_k p_k grad q_k, the gradients through unknown gates replaced by their forces."""
        velocity = gradients.total(state, near.X, near.E * p[:, None])
        if near.gates is not None:
            gradients.set_gate_forces(velocity, state, near.X, p, near.gates, s)
        if near.rest is not None:
            velocity = {name: part + near.rest[name] for name, part in velocity.items()}
        return replace(state, net=changed(state.net, velocity, dt), tau=state.tau + dt)

    def falls(self, old: SeparatedState, new: SeparatedState) -> bool:
        """Whether the smoothed margin of a homogeneous net fell, beyond rounding."""
        if self.degree is None:
            return False
        return new.log_smoothed(self.degree) < old.log_smoothed(self.degree) - 1e-12


@dataclass(frozen=True)
class Tangent:
    """Constraints near the margin, numbers ``chosen`` of the flat q: rows X, signs E, margins, Gram matrix."""

    chosen: Tensor
    X: Tensor
    E: Tensor
    q: Tensor
    G: Tensor
    start: Tensor
    gates: Gates | None  # unknown gates of neurons that slide, if any
    rest: dict[str, Tensor] | None  # sum_k p_k grad q_k of the constraints left out, if any,
    share: float  # their share of the weight,
    drift: Tensor  # and how fast they move the margins q


def pinned(state: SeparatedState, X: Tensor, E: Tensor, weights: Tensor) -> Gates | None:
    """Harmful pairs that lie at their gate already."""
    t, d, width = gate_planes(state, X, E)
    pairs = ((t.abs() <= PINNED * width) & (d < 0) & (weights[:, None] > GATE_WEIGHT)).nonzero()
    return Gates.from_pairs(state, X, E, pairs[:MAX_GATES]) if len(pairs) else None


def crossed(old: SeparatedState, new: SeparatedState, near: Tangent, p: Tensor) -> Tensor | None:
    """All pairs to treat as unknown if a step took harmful ones through their gates; None if it took no new one."""
    (t, d, _), (after, _, _) = gate_planes(old, near.X, near.E), gate_planes(new, near.X, near.E)
    through = ((t > 0) != (after > 0)) & (d < 0) & (p[:, None] > GATE_WEIGHT)
    known = torch.zeros_like(through)
    if near.gates is not None:
        known[near.gates.row, near.gates.neuron] = True
    fresh = (through & ~known).nonzero()
    if not len(fresh) or int(known.sum()) + len(fresh) > MAX_GATES:
        return None
    return torch.cat([known.nonzero(), fresh])


def length(parts: dict[str, Tensor]) -> float:
    """Euclidean norm of a vector given by parameter."""
    return math.sqrt(sum(float(part.square().sum()) for part in parts.values()))


def changed(net: nn.Module, velocity: dict[str, Tensor], dt: float) -> nn.Module:
    """A copy of a net with its parameters moved by dt times ``velocity``."""
    net = copy.deepcopy(net)
    own = dict(net.named_parameters())
    with torch.no_grad():
        for name, change in velocity.items():
            own[name].add_(change, alpha=dt)
    return net
