"""Contradictions about class averages: the classifier F, and the feature-averaging nets (I1 I4 I12 I13 I16)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from polyrelu.bias import flip_radii
from polyrelu.claims.claim import Claim, Standing, Verdict, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.averaging_nets import RECIPES
from polyrelu.claims.setups.mixture_nets import TEST_SEED
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import AverageClassifier, FixedOutputNet, GroupedNet, unit_rows
from polyrelu.robust import average_radius, bracket
from polyrelu.robust.attacks import CROSS_ENTROPY, PGD, Zero
from polyrelu.train import descend

ALPHA, DIM = 0.1, 1000
NEVER = 1e-30  # a loss that ends no run


def _in_span(noise: float) -> OrthonormalMixture:
    """The K = 6 + 4 coordinates that F and F^(p) see of x = mu_k + noise g in any dimension."""
    return OrthonormalMixture(10, 6, 4, ALPHA, noise=noise, dtype=torch.float64)


def noise_covariance(profile: Profile, seed: int) -> Measured:
    """Radii of F for x = mu_k + N(0, alpha^2 I/D) and for x = mu_k + N(0, alpha^2 I)."""
    values = {}
    for name, noise in (("α²I/D", ALPHA / math.sqrt(DIM)), ("α²I", ALPHA)):
        mixture = _in_span(noise)
        data = mixture.sample(20_000, seed=seed)
        radii = average_radius(data.rows(), data.y, mixture.centres, mixture.labels)
        values[f"accuracy of F at .30, covariance {name}"] = float((radii > 0.30).double().mean())
        for level in (0.1, 0.9):
            values[f"{level:.0%} quantile of F's radius, covariance {name}"] = float(radii.quantile(level))
    return Measured(values)


def one_direction(profile: Profile, seed: int) -> Measured:
    """F at x + r d for one d for all points, at x - y r d0, and where a single d makes F = 0 at every centre."""
    mixture = _in_span(ALPHA / math.sqrt(DIM))
    data = mixture.sample(20_000 if profile == "paper" else 2000, seed=seed)
    X, y, F, r = data.rows(), data.y, AverageClassifier(mixture.centres, mixture.labels), 1.5 / math.sqrt(10)

    def accuracy(Z: Tensor) -> float:
        return float((y * F(Z) > 0).double().mean())

    plus, minus = mixture.class_averages  # all that F sees
    turns = torch.linspace(0, 2 * math.pi, 361, dtype=torch.float64)[:-1].tolist()
    common = [accuracy(X + r * (math.cos(a) * plus + math.sin(a) * minus)) for a in turns]
    d0 = mixture.labels @ mixture.centres / math.sqrt(10)
    down = unit_rows(-(plus / math.sqrt(6) + minus / 2)[None])[0]
    far = flip_radii(F, mixture.centres, mixture.labels, down.expand(10, -1), torch.ones(10)).max()
    return Measured(
        {
            "accuracy of F at 1.5/√K, best common direction": min(common),
            "accuracy of F at 1.5/√K, x − y r d0": accuracy(X - r * y[:, None] * d0),
            "radius in 1/√K at which one direction makes F = 0 at every centre": float(far) * math.sqrt(10),
        }
    )


def unit_averages(profile: Profile, seed: int) -> Measured:
    """Radius at a centre of relu<x, m_+> - relu<x, m_-> with m the sums of the centres, or unit vectors."""
    values = {}
    for K1, K2 in ((6, 4), (5, 5)):
        mixture = OrthonormalMixture(DIM if profile == "paper" else 20, K1, K2, ALPHA, rotate=seed, dtype=torch.float64)
        net = AverageClassifier(mixture.centres, mixture.labels).as_polyrelu_net()
        for name in ("sums", "unit averages"):
            if name == "unit averages":
                net.weight.data = mixture.class_averages
            radii = bracket(net, mixture.centres, mixture.labels, tol=1e-6).upper
            values[f"radius at a positive centre, {name}, {K1}+{K2}"] = float(radii[0])
            values[f"radius at a negative centre, {name}, {K1}+{K2}"] = float(radii[-1])
    return Measured(values)


def averaging_starts(profile: Profile, seed: int) -> Measured:
    """cos(w, mu) of the fixed-output net after the same steps from deviation 1e-5 and from w ~ N(0, I/d)."""
    dim, n, rate, steps = RECIPES[profile]
    mixture = OrthonormalMixture(dim, 5, 5, 1.0, scale="sqrt_dim")
    data, values = mixture.sample(n, seed=seed), {}
    for name, scale in (("1e-5", 1e-5), ("1/√d", None)):
        net = FixedOutputNet(dim, 5, scale=scale, seed=seed)
        run = descend(net, data, rate=rate, loss="logistic", until=NEVER, steps=steps, every=steps)
        cosines = normalize(run.net.weight.detach()) @ mixture.directions.T  # type: ignore[operator]
        own = net.signs[:, None] == mixture.labels
        values[f"mean cosine to own centres, start {name}"] = float(cosines[own].mean())
        values[f"largest absolute cosine to other centres, start {name}"] = float(cosines[~own].abs().max())
        values[f"training accuracy, start {name}"] = run.accuracy
    return Measured(values)


def summed_readout(profile: Profile, seed: int) -> Measured:
    """The net trained on cluster labels at R = .6 sqrt(d): read-outs, directions, and the attack on its own loss."""
    dim, n, rate, steps = RECIPES[profile]
    mixture = OrthonormalMixture(dim, 5, 5, 1.0, scale="sqrt_dim")
    data, test, R = mixture.sample(n, seed=seed), mixture.sample(400, seed=TEST_SEED + seed), 0.6 * math.sqrt(dim)
    clusters = Dataset(data.rows(), data.cluster, data.cluster, data.centres)  # type: ignore[arg-type]
    start = GroupedNet(dim, 10, 1, scale=1e-5, seed=seed)
    net = descend(start, clusters, rate=rate, loss="cross_entropy", until=NEVER, steps=steps, every=steps).net
    assert isinstance(net, GroupedNet) and test.cluster is not None
    X, y, labels, mu = test.rows(), test.y, mixture.labels, mixture.directions

    @torch.no_grad()
    def held(way: Tensor, rule: str) -> Tensor:
        return y * net.binary(X + R * normalize(way), labels, rule) > 0

    opposite = y[:, None] != labels
    every = opposite.to(mu) @ mu - mu[test.cluster]
    single = torch.stack([held(row - mu[test.cluster], "max") | ~opposite[:, k] for k, row in enumerate(mu)]).all(0)
    own_loss = PGD(steps=40, loss=CROSS_ENTROPY, starts=(Zero(),))(net, X, test.cluster, radius=R, seed=seed)
    return Measured(
        {
            "accuracy of the summed read-out at .6√d": float(held(every, "sum").double().mean()),
            "accuracy of the largest-logit read-out at .6√d": float((single & held(every, "max")).double().mean()),
            "reported by PGD on the net's own loss at .6√d": 1 - float(own_loss.success.double().mean()),
        }
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I1",
        sentence="The posters give each cluster the covariance α²I, the 2025 paper and the public code α²I/D.",
        paper="MV24",
        where="poster, against the code",
        standing=Standing.PRINTED,
        published="α²I; robust accuracy 1.0 at .30",
        settings="Exact radii of F, 6+4 clusters, α = .1, D = 1000, 20 000 points; the same at both sizes.",
        experiment=Experiment(noise_covariance),
        checks=(near("accuracy of F at .30, covariance α²I", 1.0, 0.02),),
        why=(
            near("accuracy of F at .30, covariance α²I/D", 1.0, 0.02),
            near("10% quantile of F's radius, covariance α²I/D", 0.312, 0.002),
            near("90% quantile of F's radius, covariance α²I/D", 0.320, 0.002),
            near("10% quantile of F's radius, covariance α²I", 0.188, 0.01),
            near("90% quantile of F's radius, covariance α²I", 0.440, 0.01),
        ),
        reason="The published curve needs α²I/D. With α²I as the posters print it, a tenth of the points of F would "
        "break at .19 already and another tenth hold beyond .44.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I4",
        sentence="Theorem 1(a) names one unit direction d0 that breaks F on both classes at (1 + ρ)/√K, for every ρ > "
        "0.",
        paper="MV24",
        where="Theorem 1(a)",
        standing=Standing.PRINTED,
        published="accuracy ≤ 2 exp(−CDρ²/(α²K)), about 0 at ρ = .5",
        settings={
            "quick": "F, 6+4 clusters, α = .1, D = 1000, 2000 points, 360 directions in the plane that F sees.",
            "paper": "F, 6+4 clusters, α = .1, D = 1000, 20 000 points, 360 directions in the plane that F sees.",
        },
        experiment=Experiment(one_direction),
        checks=(at_most("accuracy of F at 1.5/√K, best common direction", 0.05, 0.0),),
        why=(
            near("accuracy of F at 1.5/√K, best common direction", 0.4, 0.01),
            at_most("accuracy of F at 1.5/√K, x − y r d0", 0.01),
            near("radius in 1/√K at which one direction makes F = 0 at every centre", 10 / math.sqrt(24), 1e-6),
        ),
        reason="No common direction takes more than one class below √(K/(K1K2)), about 2/√K; there F is 0, not wrong. "
        "The statement holds with the sign of the label: x − y r d0.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I12",
        sentence="The class averages μ+ and μ− in F are sums of the centres on the posters and unit vectors in the "
        "figures, as if it were the same.",
        paper="MV24",
        where="posters, against Fig. 2c",
        standing=Standing.PRINTED,
        published="1/√K = .3162 for either class",
        settings={
            "quick": "Two-neuron nets at exact centres, D = 20, 6+4 and 5+5 clusters, certified and attacked within "
            "1e-6.",
            "paper": "Two-neuron nets at exact centres, D = 1000, 6+4 and 5+5 clusters, certified and attacked "
            "within 1e-6.",
        },
        experiment=Experiment(unit_averages),
        checks=(
            near("radius at a positive centre, unit averages, 6+4", 0.3162, 1e-3),
            near("radius at a negative centre, unit averages, 6+4", 0.3162, 1e-3),
        ),
        why=(
            near("radius at a positive centre, unit averages, 6+4", 1 / math.sqrt(12), 1e-5),
            near("radius at a negative centre, unit averages, 6+4", 1 / math.sqrt(8), 1e-5),
            *(near(f"radius at a {c} centre, sums, 6+4", 10**-0.5, 1e-5) for c in ("positive", "negative")),
            *(near(f"radius at a {c} centre, unit averages, 5+5", 10**-0.5, 1e-5) for c in ("positive", "negative")),
        ),
        reason="F must be read with sums. Unit vectors move the break to 1/√(2 K_own), .289 and .354 for 6+4; only for "
        "K1 = K2 are both readings the same.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I13",
        sentence="The slides start the weights at variance 1/d, the experiment behind the plotted cosines at a "
        "deviation of 1e-5.",
        paper="LPLL25",
        where="slides, against Fig. 2a",
        standing=Standing.SECONDARY,
        published="cosine to own centres .40 to .48",
        settings={
            "quick": "d = 512, 5+5 clusters, 500 points, 5+5 neurons, logistic loss, 200 steps of .005 from either "
            "start.",
            "paper": "d = 3072, 5+5 clusters, 1000 points, 5+5 neurons, logistic loss, 100 steps of .001 from either "
            "start.",
        },
        experiment=Experiment(averaging_starts),
        checks=(near("mean cosine to own centres, start 1/√d", 0.447, 0.04),),
        why=(
            near("mean cosine to own centres, start 1e-5", 0.447, 0.02),
            at_most("mean cosine to own centres, start 1/√d", 0.15),
            *(at_least(f"training accuracy, start {name}", 0.95) for name in ("1e-5", "1/√d")),
        ),
        reason="The plotted cosines need the small start. From variance 1/d the same steps also fit the data, but the "
        "weights are still mostly the start: the theorem's time, polynomial in d, is far longer than the experiment.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="I16",
        sentence="The net trained on cluster labels, read out as a sum over each class, is shown to hold to about "
        "√(d/2), as decoupled features should.",
        paper="LPLL25",
        where="Fig. 3, left",
        standing=Standing.READ_OFF,
        published="1.0 at .6√d (33.3 for d = 3072)",
        settings={
            "quick": "d = 512, 5+5 clusters, 500 points, one neuron a cluster, cross-entropy, 200 steps of .005; 400 "
            "test points.",
            "paper": "d = 3072, 5+5 clusters, 1000 points, one neuron a cluster, cross-entropy, 100 steps of .001; "
            "400 test points.",
        },
        experiment=Experiment(summed_readout),
        checks=(near("accuracy of the summed read-out at .6√d", 1.0, 0.02),),
        why=(
            at_most("accuracy of the summed read-out at .6√d", 0.05),
            at_least("accuracy of the largest-logit read-out at .6√d", 0.9),
            at_least("reported by PGD on the net's own loss at .6√d", 0.95),
        ),
        reason="A summed read-out is F^(1): stepping to all opposite centres at once breaks it at √(d/(1 + k_opp)), of "
        "order √(d/k). An attack on the net's own ten-class loss reports the plotted 1.0; the largest logit of each "
        "class does hold that far.",
        expects=Verdict.ARTEFACT,
    ),
)
