"""Readings of printed formulas: degrees, a ratio, a missing sign, a bound at its end, the loss at the start."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyrelu.bias import alignment_field, alignment_speed, tangent_part
from polyrelu.claims import Measured, Profile, Quantity, experiment
from polyrelu.claims.errata import sizes
from polyrelu.claims.setups.mixture_nets import untrained
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import CentreClassifier, PolyReLUNet, unit_rows
from polyrelu.robust import Score, centre_radius
from polyrelu.robust.theory import centre_robust_bound
from polyrelu.train import loss_slopes


def degree(score: Score, X: Tensor, origin: Tensor | float = 0.0) -> float:
    """log_2 |score(origin + 2 (x - origin))| / |score(x)|."""
    with torch.no_grad():
        return float(torch.log2(score(origin + 2 * (X - origin)).norm() / score(X).norm()))


@experiment()
def degree_of_image_nets(profile: Profile, seed: int) -> Measured:
    """Degree in the centred x of the logits without bias, p = 4, with and without division by |x|^(p-1)."""
    dim, width = sizes.IMAGE_INPUTS[profile], sizes.IMAGE_NEURONS[profile]
    X = torch.rand(200, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    values = {}
    for name, normalise in (("image nets", True), ("printed formula", False)):
        net = PolyReLUNet(
            dim, width, 4.0, 10, init="kaiming", seed=seed, centre=X.mean(0), normalise_input=normalise, bias=True,
            dtype=torch.float64,
        )  # fmt: skip
        assert net.bias is not None
        values[Quantity("degree in x", net=name, p=4)] = degree(lambda Z, f=net: f(Z) - f.bias, X, X.mean(0))  # type: ignore[misc]
    return Measured(values)


@experiment()
def degree_of_centres(profile: Profile, seed: int) -> Measured:
    """Degree in x of F^(3) and of a net with p = 3."""
    mixture = OrthonormalMixture(sizes.DEGREE[profile], 6, 4, 0.1, dtype=torch.float64)
    X = mixture.sample(200, seed=seed).rows()
    net = PolyReLUNet(mixture.dim, 100, 3.0, seed=seed, dtype=torch.float64)
    ideal = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    nets = (("F^(p)", ideal), ("random net", net))
    return Measured({Quantity("degree in x", net=name, p=3): degree(f, X) for name, f in nets})


@experiment()
def margin_ratio(profile: Profile, seed: int) -> Measured:
    """1.2e-3 / 1.8e-4, and the most that numbers rounding to these can give."""
    return Measured({"ratio of the printed margins": 1.2e-3 / 1.8e-4, "largest by rounding": 1.25e-3 / 1.75e-4})


@experiment(over={"p": (1, 3)})
def missing_sign(profile: Profile, seed: int, p: int) -> Measured:
    """cos of -P_w dL/dw and the field P_w x^(p)(w), with and without sign(v), smallest over the neurons it moves."""
    _, data, net = untrained(sizes.ALIGNMENT[profile], p, seed, scale=1e-8)
    loss = (-data.y * net(data.rows())).exp().sum()
    u = unit_rows(net.weight)[0]
    true = unit_rows(-tangent_part(torch.autograd.grad(loss, net.weight)[0], u))[0]
    printed = unit_rows(tangent_part(alignment_field(data, net.weight.detach(), p), u))[0]
    moved = (true.norm(dim=1) > 0.5) & (printed.norm(dim=1) > 0.5)
    positive = net.output.detach()[0] > 0
    cosine, signed = (true * printed).sum(1), (true * unit_rows(alignment_speed(net, data))[0]).sum(1)
    values = {
        "cosine to the printed formula, worst neuron": float(cosine[moved].min()),
        "cosine to the printed formula, worst neuron with v > 0": float(cosine[moved & positive].min()),
        "cosine to the printed formula, best neuron with v < 0": float(cosine[moved & ~positive].max()),
        "cosine with sign(v), worst neuron": float(signed[moved].min()),
    }
    return Measured(values)


DIMS = {3.0: 100, 0.7: 1000}  # by α: where accuracy is below 1; where the bound says something


@experiment(over={"alpha": tuple(DIMS)})
def largest_delta(profile: Profile, seed: int, alpha: float) -> Measured:
    """Share of points whose radius exceeds (sqrt(2) - delta)/2 = 0 at delta = sqrt(2), beside clean accuracy."""
    mixture = OrthonormalMixture(DIMS[alpha], 6, 4, alpha, dtype=torch.float64)
    data = mixture.sample(sizes.LARGEST_DELTA[profile], seed=seed)
    X, y, F = data.rows(), data.y, CentreClassifier(mixture.centres, mixture.labels, 3.0)
    clean = float((y * F(X) > 0).double().mean())
    robust = float((centre_radius(X, y, mixture.centres, mixture.labels, 3.0) > 0).double().mean())
    values = {
        "accuracy at δ = √2 minus clean accuracy": robust - clean,
        "clean accuracy": clean,
        "clean accuracy minus the bound at δ = √2": clean
        - centre_robust_bound(math.sqrt(2), mixture.dim, 10, alpha, C=0.25),
    }
    return Measured(values)


@experiment()
def starting_loss(profile: Profile, seed: int) -> Measured:
    """Mean of (y - f)^2/2 and of (y - f)^2 before the first step."""
    _, data, net = untrained(sizes.STARTING_LOSS[profile], 3.0, seed)
    with torch.no_grad():
        f = net(data.rows())
        half = loss_slopes("squared", f[:, None], data.y).log_loss.exp().mean()
        return Measured(
            {"mean of ½(y − f)² at the start": float(half), "mean of (y − f)²": float((data.y - f).square().mean())}
        )
