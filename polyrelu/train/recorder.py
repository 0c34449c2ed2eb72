"""The record of a flow: loss, accuracy and, neuron by neuron, contribution and cosines to what could be learned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train.stopping import Status, Until

Products = Callable[[Tensor, Tensor], Tensor]


def inner_products(u: Tensor, vectors: Tensor) -> Tensor:
    """Inner products of all rows of u and all rows of ``vectors``."""
    return u @ vectors.T


@dataclass(frozen=True)
class ReferenceDirections:
    """Unit vectors a neuron may align with: the class averages and, where they are known, the sub-class centres."""

    averages: Tensor
    centres: Tensor | None

    @classmethod
    def from_net(cls, net: PolyReLUNet, data: Dataset) -> ReferenceDirections:
        """As the network sees them: its own centre subtracted."""
        shift = 0 if net.centre is None else net.centre

        def seen(points: Tensor) -> Tensor:
            moved = points.to(net.weight.dtype) - shift
            norm: Tensor = torch.linalg.vector_norm(moved, dim=1, keepdim=True)
            return moved / norm.clamp(min=1e-30)

        return cls(seen(data.class_means()), None if data.centres is None else seen(data.centres))

    def cosines(self, u: Tensor, products: Products = inner_products) -> dict[str, Tensor]:
        """Largest cosine of each row of u to a direction of each kind; ``products`` gives all inner products."""
        found = {"cos_average": products(u, self.averages).amax(1)}
        if self.centres is not None:
            found["cos_centre"] = products(u, self.centres).amax(1)
        return found


def look(net: PolyReLUNet, probes: ReferenceDirections) -> dict[str, Any]:
    """Contribution and cosines of every neuron of a network, as a moment records them."""
    with torch.no_grad():
        found = probes.cosines(net.directions()) | {"log_contribution": net.log_contributions()}
    return {name: values.cpu().numpy() for name, values in found.items()}


def met(until: Until, log_loss: float, log_time: float, accuracy: float, moment: dict[str, Any]) -> Status | None:
    """The first stop condition that holds at a moment of a descent or of the end of a flow."""
    if log_loss <= until.log_loss:
        return Status.LOSS
    if until.time is not None and log_time >= math.log(until.time) - 1e-9:
        return Status.TIME
    if until.accurate and accuracy >= 1:
        return Status.ACCURATE
    if until.alignment is not None and median_alignment(moment) >= until.alignment:
        return Status.ALIGNED
    return None


def median_alignment(moment: dict[str, Any], moving: Tensor | None = None) -> float:
    """Median over neurons (those ``moving``) of the largest cosine to any probe at a recorded moment."""
    best = torch.as_tensor(moment["cos_average"])
    if len(moment.get("cos_centre", ())):
        best = torch.maximum(best, torch.as_tensor(moment["cos_centre"]))
    best = best if moving is None else best[moving]
    return float(best.median()) if len(best) else 0.0
