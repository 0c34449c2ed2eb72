"""Where trained nets break: robust accuracy, proven and attacked, beside the published attack (MV24 Fig. 2e).

certified(r) <= true robust accuracy at r <= attacked(r) <= what the published attack leaves
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyrelu.claims import Key, Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.setups.mixture_nets import ideal, sorted_radii, trained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket, curve, relative_gaps
from polyrelu.robust.attacks import PublishedPGD
from polyrelu.robust.distance import common_span, neuron_sum_of

LOOKS = {1.0: (0.28, 0.3, 0.32, 0.34, 0.35, 0.4), 3.0: (0.66, 0.7, 0.7071, 0.72, 0.75, 0.85)}  # radii, by p
ATTACKED = {1.0: (0.28, 0.3, 0.32, 0.34, 0.4), 3.0: (0.7, 0.75, 0.8, 0.85, 0.9, 0.98)}  # by the published attack


def published_accuracy(
    net: PolyReLUNet, F: Any, test: Dataset, radii: Sequence[float], steps: int = 2000
) -> list[float]:
    """What the published attack leaves at each radius, computed in the span of neurons and centres.

    The attack starts at x and follows gradients, so it never leaves x + span; what x has outside changes no logit.
    """
    f, G = neuron_sum_of("f", net).strongest(), neuron_sum_of("F", F)
    basis = common_span(f, G)
    score, X = f.inside(basis).values, test.rows().double() @ basis.T
    attack = PublishedPGD(steps=steps)
    return [float((~attack(score, X, test.y.double(), radius=r).success).double().mean()) for r in radii]


@experiment(over={"p": (1.0, 3.0)}, repeats={"quick": 1, "paper": 5})
def breaking(profile: Profile, seed: int, p: float) -> Measured:
    """Robust accuracy of the net of Fig. 2, α = .1: bracketed, and as the published attack has it."""
    run = trained(SIX_FOUR[profile], p, seed)
    test = run.test(SIX_FOUR[profile].points)
    radii = bracket(run.net, test.rows(), test.y, tol=1e-4)
    line, few, tried = curve(radii), run.test(sizes.PUBLISHED_ATTACK_POINTS[profile]), ATTACKED[p]
    left = published_accuracy(run.net, ideal(run.mixture, p), few, tried, sizes.PUBLISHED_ATTACK_STEPS[profile])
    values: dict[Key, float] = {"median radius": line.median_radius.upper}
    for r in LOOKS[p]:
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
    bands = {p: values.along("repeat", "median radius", p=p).values() for p in (1.0, 3.0)}
    return {Quantity("width of the band of median radii", p=p): max(band) - min(band) for p, band in bands.items()}


@experiment(
    over={"p": (1.0, 3.0), "repeat": {profile: range(number) for profile, number in sizes.REPEATS.items()}},
    combine=_widths,
)
def repeats(profile: Profile, seed: int, p: float, repeat: int) -> Measured:
    """The median radius of one of several nets."""
    run = trained(SIX_FOUR[profile], p, seed * sizes.REPEATS[profile] + repeat)
    test = run.test(200)
    radii = bracket(run.net, test.rows(), test.y)
    return Measured({"median radius": curve(radii).median_radius.upper}, {"p": p})
