"""Lipschitz bounds of layers in l2, and their product for a deep net; see `lipschitz`."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from polyrelu.errors import InputError
from polyrelu.nets import MLP, LogisticRegression, SmallCNN

LARGEST_SLOPES = {"sigmoid": 0.25, "gelu": 1.1290}  # sup |phi'|, rounded up; 1 for every other activation of an MLP
CONSTANTS: dict[type[nn.Module], float] = {
    **dict.fromkeys((nn.ReLU, nn.Tanh, nn.Softplus, nn.Flatten, nn.Identity), 1.0),
    nn.Sigmoid: 0.25,
    nn.GELU: 1.1290,
}


def product_of_norms(net: nn.Module) -> tuple[float, float]:
    """prod_l |W_l|_2 (times sup |phi'|), with |w_c - w_k| for the last layer; and what is attained: all or 0.

    One linear layer attains it. Max-pools of disjoint windows have constant 1. O(a b min(a, b)) for a layer (a, b).
    """
    factors: list[float] = []
    if isinstance(net, LogisticRegression | nn.Linear):
        last: Tensor = net.weight
    elif isinstance(net, MLP):
        *hidden, last = net.weights
        steep = LARGEST_SLOPES.get(net.settings["activation"], 1.0)
        factors = [steep * _norm(weight) for weight in hidden]
    elif isinstance(net, SmallCNN):
        first, second, third, last = net.weights
        factors = [filter_norm(first, net.side), filter_norm(second, -(-net.side // 2)), _norm(third)]
    elif isinstance(net, nn.Sequential) and len(net) and isinstance(net[-1], nn.Linear):
        factors = [_layer(name, module) for name, module in list(net.named_children())[:-1]]
        last = net[-1].weight
    else:
        allowed = "a net of this package with weights, or an nn.Sequential that ends in nn.Linear"
        raise InputError(f"net={type(net).__name__}: expected {allowed}.")
    value = float(differences(last.detach().double()).norm(dim=1).amax()) * math.prod(factors)
    return value, 0.0 if factors else value


def differences(A: Tensor) -> Tensor:
    """A_c - A_k for all pairs of rows; A itself if it has one."""
    if len(A) == 1:
        return A
    c, k = torch.triu_indices(len(A), len(A), 1)
    return A[c] - A[k]


def filter_norm(weight: Tensor, side: int) -> float:
    """A bound of the norm of a SAME convolution (out, in, k, k), stride 1, on side x side images; O(side^2 out in^2).

    It is a part of the circular convolution on side + k - 1 pixels, which the Fourier transform makes block-diagonal.
    """
    size = side + weight.shape[-1] - 1
    symbol = torch.fft.fft2(weight.detach().double(), s=(size, size)).permute(2, 3, 0, 1)
    return float(torch.linalg.matrix_norm(symbol, 2).amax())


def _layer(name: str, module: nn.Module) -> float:
    if type(module) in CONSTANTS:
        return CONSTANTS[type(module)]
    if isinstance(module, nn.LeakyReLU):
        return max(1.0, abs(module.negative_slope))
    if isinstance(module, nn.Linear):
        return _norm(module.weight)
    if isinstance(module, nn.Conv2d) and module.groups == 1 and module.padding_mode == "zeros":
        return math.sqrt(math.prod(module.kernel_size)) * _norm(module.weight.flatten(1))  # a pixel is in k k patches
    if isinstance(module, nn.MaxPool2d) and module.stride == module.kernel_size and module.dilation == 1:
        return 1.0
    raise InputError(
        f"net: layer {name}, {module}, has no Lipschitz bound here; expected layers such as Linear or ReLU."
    )


def _norm(weight: Tensor) -> float:
    return float(torch.linalg.matrix_norm(weight.detach().double(), 2))
