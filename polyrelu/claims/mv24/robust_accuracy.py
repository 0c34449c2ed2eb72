"""Where trained nets break: robust accuracy, proven and attacked, beside the published attack (MV24 Fig. 2e).

certified(r) <= true robust accuracy at r <= attacked(r) <= what the published attack leaves
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity, Values
from polyrelu.claims.setups.mixture_nets import ideal, sorted_radii, trained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket, curve, relative_gaps
from polyrelu.robust.attacks import PublishedPGD
from polyrelu.robust.distance import NeuronSum, common_span, neuron_sum_of


class Inside(nn.Module):
    """A net in coordinates of the span of its neurons: sum_j a_j relu(<z, u_j>)^p."""

    def __init__(self, part: NeuronSum) -> None:
        """``part``: directions in those coordinates."""
        super().__init__()
        self.part = part

    def forward(self, Z: Tensor) -> Tensor:
        """One logit for each row."""
        return self.part.values(Z)


def published_accuracy(
    net: PolyReLUNet, F: Any, test: Dataset, radii: Sequence[float], steps: int = 2000
) -> list[float]:
    """What the published attack leaves at each radius, computed in the span of neurons and centres.

    The attack starts at x and follows gradients, so it never leaves x + span; what x has outside changes no logit.
    """
    f, G = neuron_sum_of("f", net).strongest(), neuron_sum_of("F", F)
    basis = common_span(f, G)
    small, X = Inside(f.inside(basis)), test.rows().double() @ basis.T
    attack = PublishedPGD(steps=steps)
    return [float((~attack(small, X, test.y.double(), radius=r).success).double().mean()) for r in radii]


@experiment(over={"p": (1.0, 3.0)}, repeats={"quick": 1, "paper": 5})
def breaking(profile: Profile, seed: int, p: float) -> Measured:
    """Robust accuracy of the net of Fig. 2, α = .1: bracketed, and as the published attack has it."""
    run = trained(SIX_FOUR[profile], p, seed)
    test = run.test(SIX_FOUR[profile].points)
    radii = bracket(run.net, test.rows(), test.y, tol=1e-4)
    attack, tried = sizes.PUBLISHED_ATTACK[profile], sizes.ATTACKED[p]
    line, few = curve(radii), run.test(attack.points)
    left = published_accuracy(run.net, ideal(run.mixture, p), few, tried, attack.steps)
    values: dict[Key, float] = {"median radius": line.median_radius.upper}
    for r in sizes.LOOKS[p]:
        values[Quantity("accuracy", radius=r)] = line.attacked(r)
        values[Quantity("certified accuracy", radius=r)] = line.certified(r)
    values |= {Quantity("accuracy by the published attack", radius=r): a for r, a in zip(tried, left, strict=True)}
    return Measured(values, {"p": p, **sorted_radii(radii), "published radii": tried, "published attack": left})


@experiment(over={"p": (1.0, 3.0, 4.0)})
def agree(profile: Profile, seed: int, p: float) -> Measured:
    """Proven and found radii of fresh points."""
    size = sizes.AGREE[profile]
    run = trained(size, p, seed)
    test = run.test(size.points)
    radii = bracket(run.net, test.rows(), test.y, tol=1e-3)
    median = curve(radii).median_radius
    values = {"largest gap": float(relative_gaps(radii).max()), "median radius": median.upper}
    return Measured(values, {"p": p, **sorted_radii(radii)})


def _widths(values: Values) -> dict[Quantity, float]:
    bands = {p: values.along("repeat", "median radius", p=p).values() for p in sizes.LOOKS}
    return {Quantity("width of the band of median radii", p=p): max(band) - min(band) for p, band in bands.items()}


def _nets(profile: Profile) -> list[dict[str, float]]:
    return [{"p": p, "repeat": repeat} for p in sizes.LOOKS for repeat in range(sizes.REPEATS[profile])]


@experiment(parts=_nets, combine=_widths)
def repeats(profile: Profile, seed: int, p: float, repeat: int) -> Measured:
    """The median radius of one of several nets."""
    run = trained(SIX_FOUR[profile], p, seed * sizes.REPEATS[profile] + repeat)
    test = run.test(200)
    radii = bracket(run.net, test.rows(), test.y)
    return Measured({"median radius": curve(radii).median_radius.upper}, {"p": p})
