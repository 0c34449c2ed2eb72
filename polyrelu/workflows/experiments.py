"""Experiments for sweeps: what a net learns from a mixture of Gaussians, and how far it holds, as plain numbers.

function = "polyrelu.workflows.experiments:mixture"
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polyrelu.sweep import sweepable
from polyrelu.workflows.flow.settings import DEFAULT_LOSS, FlowSettings

SUBPACKAGES = ("data", "nets", "train", "bias", "robust", "workflows.flow")  # what the numbers come from
PUBLISHED = FlowSettings()
RADII = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


@sweepable(sources=tuple(f"polyrelu.{name}" for name in SUBPACKAGES))
def mixture(
    *,
    p: float,
    clusters: str = PUBLISHED.clusters,
    dim: int = PUBLISHED.dim,
    samples: int = PUBLISHED.samples,
    width: int = PUBLISHED.width,
    alpha: float = PUBLISHED.alpha,
    init: float = PUBLISHED.init,
    start: str = PUBLISHED.start,
    nudge: float = PUBLISHED.nudge,
    loss: str = PUBLISHED.loss,
    until_loss: float = DEFAULT_LOSS,
    rtol: float = PUBLISHED.rtol,
    dtype: str = PUBLISHED.dtype,
    seed: int = PUBLISHED.seed,
    points: int = 0,
    tol: float = 1e-3,
    radii: Sequence[float] = RADII,
) -> dict[str, Any]:
    """Train by gradient flow as ``polyrelu flow`` does, then measure the net (Min & Vidal, ICML 2024, Fig. 2).

    status, log10_time, log10_loss, accuracy, evaluations : how training ended
    neurons : how many carry 99 % of sum_j |v_j| |w_j|; cos_centre and cos_average are the means of their largest
        cosines to a sub-class centre and to a class average; covered counts the centres they point at
    dist_average, dist_centre : dist(f, F) and dist(f, F^(p))
    radius, clean, certified, attacked (points > 0) : of so many fresh points, the median radius between its proof and
        its attack, and both accuracies at ``radii``
    """
    from polyrelu.bias import alignment
    from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet
    from polyrelu.robust import bracket, curve, dist
    from polyrelu.train import flow
    from polyrelu.workflows.flow.run import mixture_and_net

    settings = FlowSettings(
        p=p, clusters=clusters, dim=dim, samples=samples, width=width, alpha=alpha, init=init, start=start,
        nudge=nudge, loss=loss, until_loss=until_loss, rtol=rtol, dtype=dtype, seed=seed,
    )  # fmt: skip
    mix, drawn = mixture_and_net(settings)
    data = mix.sample(samples, seed)
    out = flow(drawn, data, loss=loss, until=until_loss, rtol=rtol)
    net = out.net
    assert isinstance(net, PolyReLUNet)
    seen = alignment(net, data)
    assert seen.centres is not None and seen.covered is not None
    found: dict[str, Any] = {
        "status": out.status.name,
        "log10_time": float(out.history.log_time[-1]) / math.log(10),
        "log10_loss": out.log10_loss,
        "accuracy": out.accuracy,
        "evaluations": out.evaluations,
        "neurons": len(seen.dominant),
        "cos_centre": float(seen.centres[seen.dominant].amax(1).mean()),
        "cos_average": float(seen.averages[seen.dominant].amax(1).mean()),
        "covered": int(seen.covered.sum()),
        "dist_average": dist(net, AverageClassifier(mix.centres, mix.labels), seed=seed).value,
        "dist_centre": dist(net, CentreClassifier(mix.centres, mix.labels, p=p), seed=seed).value,
    }
    if points:
        test = mix.sample(points, seed + 1)
        line = curve(bracket(net, test.rows(), test.y, tol=tol, seed=seed))
        found["radius"] = {"lower": line.median_radius.lower, "upper": line.median_radius.upper}
        found["clean"] = line.clean
        found["certified"] = {f"{radius:g}": line.certified(radius) for radius in radii}
        found["attacked"] = {f"{radius:g}": line.attacked(radius) for radius in radii}
    return found
