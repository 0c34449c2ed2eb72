"""Where sources contradict each other or themselves, I1-I25: both readings computed, the true one shown.

`checks` hold what a source prints, judged on the true value; `why` holds the numbers that show the truth and, where
it is known, what made the printed one. Here are readings of formulas; beside this file are class averages
(_averages), images (_digits), numbers that measuring code made (_estimators) and what needs trained nets (_trained).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyrelu.bias import alignment_field, alignment_speed, tangent_part
from polyrelu.claims import (
    inconsistencies_averages,
    inconsistencies_digits,
    inconsistencies_estimators,
    inconsistencies_trained,
)
from polyrelu.claims.claim import Claim, Standing, Verdict, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import CentreClassifier, PolyReLUNet, unit_rows
from polyrelu.robust import Score, centre_radius
from polyrelu.robust.theory import centre_robust_bound
from polyrelu.train import pull

ALPHA, DIM = 0.1, 1000


def _accuracy(score: Score, X: Tensor, y: Tensor) -> float:
    return float((y * score(X) > 0).double().mean())


def _degree(score: Score, X: Tensor, origin: Tensor | float = 0.0) -> float:
    """log_2 |score(origin + 2 (x - origin))| / |score(x)|."""
    with torch.no_grad():
        return float(torch.log2(score(origin + 2 * (X - origin)).norm() / score(X).norm()))


def degree_of_image_nets(profile: Profile, seed: int) -> Measured:
    """Degree in the centred x of the logits without bias, p = 4, with and without division by |x|^(p-1)."""
    dim, width = (784, 500) if profile == "paper" else (64, 64)
    X = torch.rand(200, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    values = {}
    for name, normalise in (("the image nets", True), ("the printed formula", False)):
        net = PolyReLUNet(
            dim, width, 4.0, 10, init="kaiming", seed=seed, centre=X.mean(0), normalise_input=normalise, bias=True,
            dtype=torch.float64,
        )  # fmt: skip
        assert net.bias is not None
        values[f"degree in x of {name}, p = 4"] = _degree(lambda Z, f=net: f(Z) - f.bias, X, X.mean(0))  # type: ignore[misc]
    return Measured(values)


def degree_of_centres(profile: Profile, seed: int) -> Measured:
    """Degree in x of F^(3) and of a net with p = 3."""
    mixture = OrthonormalMixture(DIM if profile == "paper" else 100, 6, 4, ALPHA, dtype=torch.float64)
    X = mixture.sample(200, seed=seed).rows()
    net = PolyReLUNet(mixture.dim, 100, 3.0, seed=seed, dtype=torch.float64)
    ideal = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    return Measured({"degree in x of F^(3)": _degree(ideal, X), "degree in x of a net, p = 3": _degree(net, X)})


def margin_ratio(profile: Profile, seed: int) -> Measured:
    """1.2e-3 / 1.8e-4, and the most that numbers rounding to these can give."""
    return Measured({"ratio of the printed margins": 1.2e-3 / 1.8e-4, "largest by rounding": 1.25e-3 / 1.75e-4})


def missing_sign(profile: Profile, seed: int) -> Measured:
    """cos of -P_w dL/dw and the field P_w x^(p)(w), with and without sign(v), smallest over the neurons it moves."""
    dim, width = (DIM, 1000) if profile == "paper" else (20, 50)
    data = OrthonormalMixture(dim, 3, 2, ALPHA, dtype=torch.float64).sample(1000, seed=seed)
    values: dict[str, float] = {}
    for p in (1, 3):
        net = PolyReLUNet(dim, width, p, init="balanced", scale=1e-8, seed=seed, dtype=torch.float64)
        loss = (-data.y * net(data.rows())).exp().sum()
        u = unit_rows(net.weight)[0]
        true = unit_rows(-tangent_part(torch.autograd.grad(loss, net.weight)[0], u))[0]
        printed = unit_rows(tangent_part(alignment_field(data, net.weight.detach(), p), u))[0]
        moved = (true.norm(dim=1) > 0.5) & (printed.norm(dim=1) > 0.5)
        positive = net.output.detach()[0] > 0
        cosine, signed = (true * printed).sum(1), (true * unit_rows(alignment_speed(net, data))[0]).sum(1)
        values |= {
            f"cosine to the printed formula, worst neuron, p = {p}": float(cosine[moved].min()),
            f"the same, worst neuron with v > 0, p = {p}": float(cosine[moved & positive].min()),
            f"the same, best neuron with v < 0, p = {p}": float(cosine[moved & ~positive].max()),
            f"cosine with sign(v), worst neuron, p = {p}": float(signed[moved].min()),
        }
    return Measured(values)


def largest_delta(profile: Profile, seed: int) -> Measured:
    """Share of points whose radius exceeds (sqrt(2) - delta)/2 = 0 at delta = sqrt(2), beside clean accuracy."""
    n = 20_000 if profile == "paper" else 4000
    values = {}
    for alpha, dim in ((3.0, 100), (0.7, DIM)):  # where accuracy is below 1; where the bound says something
        mixture = OrthonormalMixture(dim, 6, 4, alpha, dtype=torch.float64)
        data = mixture.sample(n, seed=seed)
        F = CentreClassifier(mixture.centres, mixture.labels, 3.0)
        clean = _accuracy(F, data.rows(), data.y)
        held = float((centre_radius(data.rows(), data.y, mixture.centres, mixture.labels, 3.0) > 0).double().mean())
        bound = centre_robust_bound(math.sqrt(2), dim, 10, alpha, C=0.25)
        values[f"accuracy at δ = √2 minus clean accuracy, α = {alpha:g}"] = held - clean
        values[f"clean accuracy, α = {alpha:g}"] = clean
        values[f"clean accuracy minus the bound at δ = √2, α = {alpha:g}"] = clean - bound
    return Measured(values)


def starting_loss(profile: Profile, seed: int) -> Measured:
    """Mean of (y - f)^2/2 and of (y - f)^2 before the first step."""
    dim, n = (DIM, 5000) if profile == "paper" else (100, 1000)
    data = OrthonormalMixture(dim, 5, 5, ALPHA, dtype=torch.float64).sample(n, seed=seed)
    net = PolyReLUNet(dim, 100, 3.0, init="balanced", scale=1e-7, seed=seed, dtype=torch.float64)
    with torch.no_grad():
        f = net(data.rows())
        half = pull("squared", f[:, None], data.y).log_loss.exp().mean()
        return Measured(
            {"mean of ½(y − f)² at the start": float(half), "mean of (y − f)²": float((data.y - f).square().mean())}
        )


def _unmeasured(name: str, needs: str) -> Experiment:
    """Nothing to run, and why."""

    def run(profile: Profile, seed: int) -> Measured:
        raise InputError(f"{name}: {needs}")

    run.__name__ = name
    return Experiment(run, needs=lambda profile: needs)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I9",
        sentence="The network is printed without any division by |x|, the nets of the image experiments divide by "
        "|x|^(p−1).",
        paper="MV24",
        where="definition of the network, against the code",
        standing=Standing.PRINTED,
        published="degree p in x",
        settings={
            "quick": "A net of 64 inputs, 64 neurons and 10 logits, p = 4, Kaiming start, x centred, bias taken off.",
            "paper": "A net of 784 inputs, 500 neurons and 10 logits, p = 4, Kaiming start, x centred, bias taken off.",
        },
        experiment=Experiment(degree_of_image_nets),
        checks=(near("degree in x of the image nets, p = 4", 4.0, 1e-6),),
        why=(
            near("degree in x of the image nets, p = 4", 1.0, 1e-9),
            near("degree in x of the printed formula, p = 4", 4.0, 1e-9),
        ),
        reason="Scaling the centred image by c scales the logits by c and not by c^p, so results on images are about "
        "another function of x than the theorems.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I10",
        sentence="Proposition 3 is printed for 1-homogeneous f, but F^(p) and the nets it is used for have degree p in "
        "x.",
        paper="MV25",
        where="Proposition 3",
        standing=Standing.PRINTED,
        published="degree 1",
        settings={
            "quick": "F^(3) and a random net with p = 3, D = 100.",
            "paper": "F^(3) and a random net with p = 3, D = 1000.",
        },
        experiment=Experiment(degree_of_centres),
        checks=(near("degree in x of F^(3)", 1.0, 1e-6),),
        why=(near("degree in x of F^(3)", 3.0, 1e-9), near("degree in x of a net, p = 3", 3.0, 1e-9)),
        reason="Read p-homogeneous: for p > 1 neither F^(p) nor any of the nets is 1-homogeneous.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I11",
        sentence="The loss-based rate is said to give a margin 10 times that of the constant rate; the printed margins "
        "are 1.2e-3 and 1.8e-4.",
        paper="LL20",
        where="text, against its printed margins",
        standing=Standing.PRINTED,
        published="10 times",
        settings="Arithmetic on two printed numbers; the same at both sizes.",
        experiment=Experiment(margin_ratio),
        checks=(near("ratio of the printed margins", 10.0, 0.5),),
        why=(near("ratio of the printed margins", 6.67, 0.01), at_most("largest by rounding", 7.2)),
        reason="The two numbers give 6.7, and whatever they were rounded from at most 7.2.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I17",
        sentence="The poster's alignment formula d/dt w/|w| ≈ P⊥ x^(p)(w) has no factor sign(v), so that all neurons "
        "would move alike.",
        paper="MV25",
        where="poster, alignment phase",
        standing=Standing.PRINTED,
        published="cosine 1 for every neuron",
        settings={
            "quick": "Gradient of the summed exponential loss at start 1e-8, D = 20, 3+2 clusters, 50 neurons, p = 1 "
            "and 3.",
            "paper": "Gradient of the summed exponential loss at start 1e-8, D = 1000, 3+2 clusters, 1000 neurons, p "
            "= 1 and 3.",
        },
        experiment=Experiment(missing_sign),
        checks=tuple(at_least(f"cosine to the printed formula, worst neuron, p = {p}", 0.999, 1.0) for p in (1, 3)),
        why=tuple(
            check
            for p in (1, 3)
            for check in (
                at_least(f"cosine with sign(v), worst neuron, p = {p}", 0.999999),
                at_least(f"the same, worst neuron with v > 0, p = {p}", 0.999),
                at_most(f"the same, best neuron with v < 0, p = {p}", -0.999),
            )
        ),
        reason="Neurons with v < 0 move exactly the other way. With the factor sign(v) the formula is right for all.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I20",
        sentence="Theorem 1(b) asks for δ < √2 on one poster and allows δ = √2 on the other.",
        paper="MV24",
        where="Theorem 1(b), both posters",
        standing=Standing.PRINTED,
        published="δ = √2 is radius 0",
        settings={
            "quick": "Exact radii of F^(3), 6+4 clusters, 4000 points; α = 3, D = 100 and α = .7, D = 1000.",
            "paper": "Exact radii of F^(3), 6+4 clusters, 20 000 points; α = 3, D = 100 and α = .7, D = 1000.",
        },
        experiment=Experiment(largest_delta),
        checks=(
            near("accuracy at δ = √2 minus clean accuracy, α = 3", 0.0, 1e-9),
            near("accuracy at δ = √2 minus clean accuracy, α = 0.7", 0.0, 1e-9),
            at_least("clean accuracy minus the bound at δ = √2, α = 0.7", 0.0),
        ),
        reason="Both readings are right: at δ = √2 the statement is about clean accuracy, and holds.",
    ),
    Claim(
        id="I22",
        sentence="The reproducibility table prints the scales of the start as “10 7” and “1 10 4”.",
        paper="MV25",
        where="reproducibility table",
        standing=Standing.SECONDARY,
        published="“10 7”, “1 10 4”",
        settings="Nothing to run.",
        experiment=_unmeasured(
            "lost_signs",
            "Signs were lost in print, nothing to measure: read ε = 1e-7, and 1e-4 as the variance of an entry.",
        ),
        checks=(),
        expects=Verdict.NOT_RUN,
    ),
    Claim(
        id="I23",
        sentence="The loss is defined as ½(y − f)², and its plotted curve starts at 1.0 although f is about 0 there.",
        paper="MV25",
        where="Fig. 5, against the definition of the loss",
        standing=Standing.READ_OFF,
        published="1.0",
        settings={
            "quick": "D = 100, 5+5 clusters, 1000 points, 100 neurons, start 1e-7.",
            "paper": "D = 1000, 5+5 clusters, 5000 points, 100 neurons, start 1e-7.",
        },
        experiment=Experiment(starting_loss),
        checks=(near("mean of ½(y − f)² at the start", 1.0, 0.02),),
        why=(near("mean of ½(y − f)² at the start", 0.5, 1e-6), near("mean of (y − f)²", 1.0, 1e-6)),
        reason="The mean of ½(y − f)² is .5 at f = 0; 1.0 is what the mean of (y − f)², without the ½, gives.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I24",
        sentence="The slides cite Theorem “5.5”, Frei et al. “2024” and Lyu et al. “20”, and write O(√d) for a radius "
        "of order √d.",
        paper="LPLL25",
        where="slides",
        standing=Standing.PRINTED,
        published="Theorem 5.5; 2024; 20; O(√d)",
        settings="Nothing to run.",
        experiment=_unmeasured(
            "citations",
            "Citations, nothing to measure: read Theorem 4.7, Frei et al. 2023, Lyu et al. 2021, and Θ(√d).",
        ),
        checks=(),
        expects=Verdict.NOT_RUN,
    ),
    *inconsistencies_averages.CLAIMS,
    *inconsistencies_digits.CLAIMS,
    *inconsistencies_estimators.CLAIMS,
    *inconsistencies_trained.CLAIMS,
)
