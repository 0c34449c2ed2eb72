"""How many directions a net uses: stable ranks of its features and weights, and effective numbers of neurons.

stable rank of M = |M|_F^2 / |M|_2^2,   between 1 and the rank        (Min & Vidal 2024, Min et al. 2024)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from polyrelu.checks import checked, checked_output
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require
from polyrelu.nets import (
    FixedOutputNet,
    GroupedNet,
    PolyReLUNet,
    TwoLayer,
    as_polyrelu_net,
    relu_power,
    unit_rows,
)


@checked
def stable_rank(matrix: Tensor) -> float:
    """|M|_F^2 / |M|_2^2 of a matrix (a, b), in float64, whatever its scale; O(a b min(a, b))."""
    require(matrix.ndim == 2 and matrix.numel() > 0, "matrix.shape", tuple(matrix.shape), "(a, b), not empty")
    M = matrix.detach().double()
    largest = float(M.abs().amax())
    require(0 < largest < torch.inf, "matrix", "zero, NaN or infinite entries", "finite numbers, not all zero")
    M = M / largest
    return _rank_of_gram(M @ M.T if len(M) <= M.shape[1] else M.T @ M)


@checked
def feature_stable_rank(net: nn.Module, data: Dataset, layer: str | Callable[[Tensor], Tensor] | None = None) -> float:
    """|H|_F^2 / |H|_2^2 of the post-activations H (n, h), streamed: O(n h (D + h) + h^3) time, O(h^2) memory.

    H is the input of the last linear map of the net. For a PolyReLUNet it is the published matrix of the MNIST figures,
    H_ij = |w_j| relu(<x~_i, u_j>)^p = relu(<x_i, w_j>)^p / |w_j|^(p-1) [/ |x_i|^(p-1)], before the output weights.
    Products of a block are in the net's dtype, sums over blocks in float64.

    Parameters
    ----------
    layer : None for the last hidden layer; the name of a submodule, whose output is taken; or a function of the rows
    """
    net, gram = as_polyrelu_net(net), None
    require(bool(net.state_dict()), "net", type(net).__name__, "a net with weights")
    with torch.no_grad():
        take = layer if callable(layer) else _features(net, layer)
        dtype = next(iter(net.state_dict().values())).dtype
        for _, rows in data.blocks():
            H = checked_output(lambda X: take(X).flatten(1), rows.to(dtype), "layer")
            gram = (0.0 if gram is None else gram) + (H.T @ H).double()
    assert gram is not None
    total = float(gram.trace())
    if not 0 < total < torch.inf:
        raise InputError("net: no neuron is active on any row, or one overflows; its features have no stable rank.")
    return _rank_of_gram(gram / total)


@checked
def weight_stable_ranks(net: nn.Module) -> dict[str, float]:
    """Stable rank of each weight matrix by name; a filter bank (out, in, k, k) counts as (out, in k k).

    For a PolyReLUNet ``weight`` is the true W, also where its norms are stored as logs. O(h D min(h, D)) a layer.
    """
    weights: dict[str, Tensor] = {name: tensor for name, tensor in net.named_parameters() if tensor.ndim > 1}
    if isinstance(net, PolyReLUNet):
        up, down = net.log_scale + net.log_balance, net.log_scale - net.log_balance
        weights = {"weight": _relative_rows(net.weight, up), "output": _relative_rows(net.output.T, down).T}
    elif isinstance(net, GroupedNet):
        weights = {"weight": net.weight.flatten(0, 1)}
    require(bool(weights), "net", type(net).__name__, "a net with at least one weight matrix")
    for name, tensor in weights.items():
        require(bool(tensor.any()), name, "0", "a weight matrix that is not zero, for zero has no stable rank")
    return {name: stable_rank(tensor.flatten(1)) for name, tensor in weights.items()}


@checked
def effective_neurons(log_contributions: Tensor) -> float:
    """(sum_j a_j)^2 / sum_j a_j^2, a_j = |v_j| |w_j|: m for m equal contributions, 1 for one neuron that has all.

    Takes the logs (``net.log_contributions()``), so a net of size 1e-300 has a number too. O(h).
    """
    logs = log_contributions.detach().double().flatten()
    good = logs.numel() > 0 and bool(logs.amax().isfinite())
    require(good, "log_contributions", "no neuron, or only zero ones", "at least one neuron that contributes")
    a = (logs - logs.amax()).exp()
    return float(a.sum().square() / a.square().sum())


def _rank_of_gram(gram: Tensor) -> float:
    return float(gram.trace() / torch.linalg.eigvalsh(gram)[-1])


def _relative_rows(rows: Tensor, log_factor: Tensor) -> Tensor:
    """exp(log_factor_j) rows_j, divided by the longest, float64: no scale is too small."""
    u, log_r = unit_rows(rows.detach())
    log_r = log_r + log_factor
    return u * (log_r - log_r.amax()).exp().nan_to_num(0.0)[:, None]


def _features(net: nn.Module, layer: str | None) -> Callable[[Tensor], Tensor]:
    """Rows -> post-activations: of a submodule, of a net we know, or what goes into the last linear map called."""
    if layer is not None:
        modules = dict(net.named_modules())
        require(layer in modules and layer != "", "layer", repr(layer), f"a submodule: {sorted(modules)[1:]}")
        return lambda X: _output_of(net, modules[layer], X)
    if isinstance(net, PolyReLUNet):
        scale = _relative_rows(net.weight, net.log_scale + net.log_balance).norm(dim=1).to(net.dtype)
        U = net.directions()
        return lambda X: relu_power(functional.linear(net.preprocess(X), U), net.p) * scale
    if isinstance(net, TwoLayer):
        return lambda X: net.phi(X @ net.weight.T)
    if isinstance(net, FixedOutputNet):
        return lambda X: functional.linear(X, net.weight, net.bias).relu()
    if isinstance(net, GroupedNet):
        return lambda X: functional.linear(X, net.weight.flatten(0, 1)).relu()
    return lambda X: _LastLinearInput.inputs(net, X)


def _output_of(net: nn.Module, module: nn.Module, X: Tensor) -> Tensor:
    outputs: list[Tensor] = []
    handle = module.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
    try:
        net(X)
    finally:
        handle.remove()
    return outputs[-1]


class _LastLinearInput(TorchFunctionMode):
    """Remembers what the last call of ``functional.linear`` was given."""

    last: Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is functional.linear:
            self.last = args[0]
        return func(*args, **(kwargs or {}))

    @classmethod
    def inputs(cls, net: nn.Module, X: Tensor) -> Tensor:
        with cls() as mode:
            net(X)
        last: Tensor | None = mode.last
        if last is None:
            raise InputError(f"net={type(net).__name__}: calls no linear map; name the layer, or give a function.")
        return last
