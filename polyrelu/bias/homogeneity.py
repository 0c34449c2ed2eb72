"""Homogeneity of a net in its weights: which layers it has, their degrees, and the same net with |theta| = 1.

    f(.., c w_i, ..) = c^(k_i) f     hence     f(c theta; x) = c^L f(theta; x),  L = sum_i k_i    (Lyu & Li 2020)

Homogeneity is a property of the architecture, so it is tried at random weights, where neither zero biases nor small
pre-activations hide its absence.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.func import functional_call

from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.nets import Net, Polar, PolyReLUNet, unit_rows
from polyrelu.train import margin_gradients

TRIAL_ROWS = 8  # inputs on which homogeneity is tried
FACTORS = (2.0, 3.0)


@final
@dataclass(frozen=True)
class HomogeneousLayer:
    """Parameters that are scaled together (a weight and its bias), and the degree k of f in them."""

    name: str
    parameters: tuple[str, ...]
    degree: float


Groups = Sequence[HomogeneousLayer] | Sequence[Sequence[str]]


@final
@dataclass(frozen=True, eq=False)
class UnitNormNet:
    """A net with its weights divided by |theta|: float64, in evaluation mode, and what was divided out.

    ``log_norms``: log |w_i| of the original layers; ``log_rho`` = log |theta|, theta all weights named in ``layers``;
    ``polar``: the neurons of ``net`` if it is a PolyReLUNet.
    """

    net: nn.Module
    layers: tuple[HomogeneousLayer, ...]
    log_norms: tuple[float, ...]
    log_rho: float
    polar: Polar | None

    @property
    def degree(self) -> float:
        """L = sum_i k_i."""
        return math.fsum(layer.degree for layer in self.layers)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that make up theta."""
        return tuple(name for layer in self.layers for name in layer.parameters)


@checked
def layers(net: nn.Module, X: Tensor | None = None, groups: Groups | None = None) -> tuple[HomogeneousLayer, ...]:
    """Layers of a homogeneous net with their degrees; an InputError names the layer of one that is not.

    A weight and its bias ("weight" and "bias", "weights.1" and "biases.1") are one layer unless ``groups`` says which
    parameters belong together; parameters in no group, or frozen, count as constants. A net that is homogeneous only
    in all weights at once (skip connections) is one layer. Costs three forward passes of 8 rows a layer.

    ``X`` (n, D): rows to try it on; needed unless the net has a ``dim`` or begins with nn.Linear.
    """
    some = groups is None or (isinstance(groups, Sequence) and len(groups) > 0)
    require(some, "layers", groups, "groups of parameters")
    require(X is None or (X.ndim == 2 and X.numel() > 0), "X.shape", None if X is None else tuple(X.shape), "(n, D)")
    if groups is not None and all(isinstance(group, HomogeneousLayer) for group in groups):
        return tuple(group for group in groups if isinstance(group, HomogeneousLayer))
    named = _groups(net) if groups is None else _check_groups(net, groups)
    require(bool(named), "net", type(net).__name__, "trained parameters (an ideal classifier has none)")
    sample = _random_copy(net, [name for group in named for name in group])
    X = (_random_rows(net) if X is None else X[:TRIAL_ROWS]).double()
    noise = torch.randn(X.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    X = torch.cat([X, noise.to(X.device)])  # rows of one class, or of zeros, may switch a drawn net off
    try:
        degrees = [_degree(sample, group, X) for group in named]
    except (RuntimeError, TypeError, AttributeError, IndexError) as error:
        why = str(error).splitlines()[0]
        raise InputError(f"X of shape {tuple(X.shape)}: expected what the net takes, but it says: {why}.") from error
    if None in degrees:
        whole = tuple(name for group in named for name in group)
        degree = _degree(sample, whole, X)
        if degree is None:
            culprit = _inhomogeneous_layer(sample, named, degrees, X)
            raise InputError(
                f"net={type(net).__name__}: expected a homogeneous net, f(c theta) = c^L f(theta), but {culprit}; "
                "train without it, or name the groups of weights that count by layers=."
            )
        return (HomogeneousLayer("all weights", whole, degree),)
    return tuple(
        HomogeneousLayer(f"layer {i} ({', '.join(group)})", group, degree)
        for i, (group, degree) in enumerate(zip(named, degrees, strict=True), 1)
        if degree is not None
    )


@checked
def unit_norm_net(net: nn.Module, X: Tensor, groups: Groups | None = None) -> UnitNormNet:
    """theta / |theta|, from log-norms: weights of 1e-300 (PolyReLUNet) are numbers. O(parameters)."""
    found = layers(net, X, groups)
    twin = copy.deepcopy(net).double().eval()
    polar = margin_gradients.neurons(twin)
    logs = {name: unit_rows(parameter.reshape(1, -1))[1][0] for name, parameter in twin.named_parameters()}
    if polar is not None:
        logs |= {"weight": _log_norm(polar.log_r), "output": _log_norm(polar.log_s)}
    norms = [_log_norm(torch.stack([logs[name] for name in layer.parameters])) for layer in found]
    log_rho = float(_log_norm(torch.stack(norms)))
    require(math.isfinite(log_rho), "|theta|", math.exp(log_rho), "finite weights that are not all 0")
    trained = {name for layer in found for name in layer.parameters}
    if polar is not None and isinstance(twin, PolyReLUNet):
        log_r, log_s = polar.log_r - log_rho * ("weight" in trained), polar.log_s - log_rho * ("output" in trained)
        polar = Polar(polar.u, polar.q, log_r, log_s)
        twin = PolyReLUNet.from_polar(polar, like=twin).eval()
    else:
        with torch.no_grad():
            for name, parameter in twin.named_parameters():
                if name in trained:
                    parameter.mul_(math.exp(-log_rho))
    return UnitNormNet(twin.requires_grad_(False), found, tuple(float(norm) for norm in norms), log_rho, polar)


def _log_norm(logs: Tensor) -> Tensor:
    """log of the Euclidean norm of numbers given by their logs."""
    return (2 * logs).logsumexp(0) / 2


def _groups(net: nn.Module) -> list[tuple[str, ...]]:
    """Trained parameters, each bias with its weight; that of a PolyReLUNet belongs to the output."""
    owner = "output" if isinstance(net, PolyReLUNet) else "weight"
    found: dict[str, list[str]] = {}
    for name, parameter in net.named_parameters():
        if parameter.requires_grad:
            found.setdefault(name.replace("biases", "weights").replace("bias", owner), []).append(name)
    return [tuple(names) for names in found.values()]


def _check_groups(net: nn.Module, groups: Groups) -> list[tuple[str, ...]]:
    known = [name for name, _ in net.named_parameters()]
    lists = [
        group for group in groups if isinstance(group, Iterable) and not isinstance(group, (HomogeneousLayer, str))
    ]
    requested = [tuple(map(str, group)) for group in lists]
    flat = [name for group in requested for name in group]
    good = len(requested) == len(groups) and all(requested) and set(flat) <= set(known) and len(set(flat)) == len(flat)
    require(good, "layers", [list(group) for group in requested], f"groups of distinct parameters from {known}")
    return requested


def _random_copy(net: nn.Module, names: Sequence[str]) -> nn.Module:
    """A float64 copy whose parameters ``names`` are N(0, 1/fan-in), biases N(0, 1)."""
    twin = copy.deepcopy(net).double().eval()
    source = torch.Generator().manual_seed(0)
    if isinstance(twin, PolyReLUNet):
        twin.log_scale.zero_()
        twin.log_balance.zero_()
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            if name in names:
                fan_in = math.prod(parameter.shape[1:])
                parameter.copy_(torch.randn(parameter.shape, generator=source, dtype=torch.float64) / fan_in**0.5)
    return twin


def _random_rows(net: nn.Module) -> Tensor:
    first = next((module for module in net.modules() if not isinstance(module, nn.Sequential)), None)
    if isinstance(net, Net):
        dim = net.dim
    elif isinstance(first, nn.Linear):
        dim = first.in_features
    else:
        raise InputError(f"X=None: expected rows to try a {type(net).__name__} on; give some of its data.")
    return torch.randn(TRIAL_ROWS, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def _degree(net: nn.Module, names: tuple[str, ...], X: Tensor) -> float | None:
    """k with f(c w) = c^k f(w) for every factor c and row of X; None if there is none."""
    parameters = dict(net.named_parameters())
    with torch.no_grad():
        weights = ({name: c * parameters[name] for name in names} for c in (1.0, *FACTORS))
        f, *scaled = (functional_call(net, given, (X,)) for given in weights)
    size = float(f.abs().max())
    require(0 < size < math.inf, "f(X)", f"{size:g} on all rows", "finite answers that are not all 0; give other rows")
    k = round(math.log2(float(scaled[0].abs().max()) / size or 1e-300), 9)
    fits = (float((g - c**k * f).abs().max()) <= 1e-9 * c**k * size for c, g in zip(FACTORS, scaled, strict=True))
    return k if all(fits) else None


def _inhomogeneous_layer(net: nn.Module, named: list[tuple[str, ...]], degrees: list[float | None], X: Tensor) -> str:
    """The first bias behind the first layer without which the net would be homogeneous, else the first bad layer."""
    biases = [(i, name) for i, group in enumerate(named[1:], 2) for name in group if "bias" in name]
    parameters = dict(net.named_parameters())
    kept = {name: parameters[name].detach().clone() for _, name in biases}
    with torch.no_grad():
        for name in kept:
            parameters[name].zero_()
        live = [group for group in named if not set(group) <= kept.keys()]
        if None not in [_degree(net, group, X) for group in live]:
            for i, name in biases:
                parameters[name].copy_(kept[name])
                if None in [_degree(net, group, X) for group in live]:
                    return f"the bias of layer {i} ({name}) breaks it"
                parameters[name].zero_()
    i = degrees.index(None)
    return f"layer {i + 1} ({', '.join(named[i])}) breaks it: what follows is not homogeneous (tanh? normalisation?)"
