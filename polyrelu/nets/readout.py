"""Classes read out from sub-classes: g_c(x) = max_{s in class c} f_s(x) (Li et al., ICLR 2025, the multi-class net)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from polyrelu.checks import checked, whole_number
from polyrelu.errors import require
from polyrelu.nets.base import Net
from polyrelu.nets.polyrelu_net import PolyReLUNet


@final
class ReadOut(Net):
    """g_c(x) = max over the sub-classes s of class c of f_s(x), c = 0..C-1, f a `PolyReLUNet` of several logits.

    The maximum, not the sum: a class holds as long as *one* of its sub-classes does, so the radius does not shrink with
    the number of sub-classes (Li et al., ICLR 2025). Two classes are 0 and 1, as any others. Train ``net`` on the
    sub-classes, then read the classes out.

    Parameters
    ----------
    net : one logit for each sub-class
    class_of : class of each sub-class; every class 0..C-1 has at least one, C >= 2
    """

    class_of: Tensor

    def __init__(self, net: PolyReLUNet, class_of: Sequence[int] | Tensor) -> None:
        require(isinstance(net, PolyReLUNet), "net", type(net).__name__, "a PolyReLUNet with a logit a sub-class")
        listed = class_of.tolist() if isinstance(class_of, Tensor) else class_of
        several = isinstance(listed, Sequence) and len(listed) > 0
        require(several, "class_of", class_of, "a list: the class of each sub-class")
        classes = [whole_number("class_of", one, least=0) for one in listed]
        fits = len(classes) == net.outputs
        require(fits, "class_of", f"{len(classes)} classes", f"{net.outputs}, one a logit of the net")
        every = set(classes) == set(range(max(classes) + 1)) and len(set(classes)) >= 2
        require(every, "class_of", classes, "classes 0..C-1, C >= 2, each of them at least once")
        super().__init__(net.dim, len(set(classes)), {})
        self.net = net
        self.register_buffer("class_of", torch.tensor(classes, device=net.weight.device), persistent=False)

    def check_settings(self) -> None:
        """An InputError if the net or the classes were changed, since this was made, to what no constructor accepts."""
        super().check_settings()
        require(isinstance(self.net, PolyReLUNet), "net.net", type(self.net).__name__, "a PolyReLUNet")
        self.net.check_settings()
        self.check_shapes(class_of=(self.net.outputs,))
        whole = not self.class_of.is_floating_point() and set(self.class_of.tolist()) == set(range(self.outputs))
        require(whole, "class_of", self.class_of.tolist(), f"classes 0..{self.outputs - 1}, each of them at least once")
        require(self.dim == self.net.dim, "dim", self.dim, f"{self.net.dim}, as of the net that is read out")

    def forward(self, X: Tensor) -> Tensor:
        """Scores (n, C) of the rows of ``X`` (n, dim)."""
        logits = self.net(X)
        nothing = logits.new_full((len(logits), self.outputs), -torch.inf)
        scores: Tensor = nothing.scatter_reduce(1, self.class_of.expand(len(logits), -1), logits, "amax")
        return scores

    @checked
    def against(self, own: int) -> PolyReLUNet:
        """A copy of the net with the logit of sub-class ``own`` first, then those of all sub-classes of other classes.

        Where its logit 0 is the largest, the class of ``own`` is read out.
        """
        require(0 <= own < len(self.class_of), "own", own, f"a sub-class, from 0 to {len(self.class_of) - 1}")
        keep = torch.cat([self.class_of.new_tensor([own]), (self.class_of != self.class_of[own]).nonzero()[:, 0]])
        chosen = ("output", "bias")
        tensors = {name: one[keep] if name in chosen else one for name, one in self.net.state_dict().items()}
        return PolyReLUNet.restore({**self.net.config(), "outputs": len(keep)}, tensors)

    def config(self) -> dict[str, Any]:
        """The net's config and the class of each sub-class."""
        return {"net": self.net.config(), "of": self.class_of.tolist()}

    @classmethod
    def restore(cls, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> ReadOut:
        """The net that had this ``config()`` and these ``state_dict()`` tensors."""
        inner = {name.removeprefix("net."): tensor for name, tensor in tensors.items()}
        return cls(PolyReLUNet.restore(config["net"], inner), config["of"])


def inner_net(net: nn.Module) -> PolyReLUNet:
    """The net itself, or the one that a `ReadOut` reads."""
    inner = net.net if isinstance(net, ReadOut) else net
    require(isinstance(inner, PolyReLUNet), "net", type(inner).__name__, "a PolyReLUNet or a ReadOut of one")
    assert isinstance(inner, PolyReLUNet)
    return inner


def logit_classes(net: nn.Module) -> Tensor:
    """(C,): the class that each logit of `inner_net` speaks for."""
    inner = inner_net(net)
    return net.class_of if isinstance(net, ReadOut) else torch.arange(inner.outputs, device=inner.weight.device)
