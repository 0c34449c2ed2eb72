"""What Min & Vidal (ICML 2025) say, and where our numbers must lie for it to hold."""

from __future__ import annotations

from functools import partial

from polyrelu.claims import Check, Claim, Quantity, Standing, Verdict, at_least, at_most, filled, within
from polyrelu.claims.mv25 import FIG7, sizes

FIG2 = filled(
    "D={dim}, {positive}+{negative} clusters, α={alpha}, n={samples}, width {width}, {points} points. pReLU and ReLU "
    "from a balanced start of 1e-7 by the flow to time 16 040; MLP (He start, and half of it), Tanh and LogReg by SGD "
    "to loss 1e-2. The paper gives neither α nor the starts nor when training stopped; at D=2000 α=.3 was chosen so "
    "that Bayes has the plotted .92 at radius .692.",
    sizes.FIG2,
)
INITIALISATION = filled(
    "D={dim}, {positive}+{negative} clusters, n={samples}, h={width} (published: D=2000, 12+8 clusters, n=20000, "
    "h=200); p=3; α=.1, the logistic loss and its flow to .03 (the polynomial net from the small start: to train "
    "accuracy 1, at paper size within 400 passes) are ours, {points} test points",
    sizes.INITIALISATION,
)
PHASES = filled(
    "D={dim}, {positive}+{negative} clusters, α={alpha}, n={samples}, p=3, squared loss, balanced start 1e-7 "
    "(published: the same with D=1000 and n=5000), h={width}; by gradient flow, .4 of which is a step (rate .2, "
    "plotted loss without the ½)",
    sizes.PHASES,
)
SENTENCE = (
    "Here the sentence is judged, not the plotted numbers: those belong to D = 2000 and to a noise, loss and length of "
    "training that are not published."
)
UNKNOWN = (
    "The direction holds, the numbers do not: α, loss, rate and length of training are not published, and the curve "
    "depends on all of them. "
)
said = partial(Claim, paper="MV25", standing=Standing.PRINTED)
plotted = partial(Claim, paper="MV25", standing=Standing.READ_OFF)
compared = partial(plotted, where="Fig. 2", settings=FIG2, experiment="mv25.robust_accuracy.models")
started = partial(
    plotted,
    where="Fig. 7",
    settings=INITIALISATION,
    experiment="mv25.robust_accuracy.starts",
    expects={"quick": Verdict.REPRODUCED, "paper": Verdict.DIFFERS},
)
phases = partial(plotted, where="Fig. 5", settings=PHASES, experiment="mv25.phases.random_start")


def _read(net: str, *radii: float) -> list[Check]:
    """Read off within .01, and .1 for the seed."""
    return [within(Quantity("not broken", net=net, radius=r), FIG7[net][r], 0.11) for r in radii]


CLAIMS: tuple[Claim, ...] = (
    compared(
        id="B8",
        sentence="The ReLU net, a ReLU net of four layers, a tanh net and logistic regression all break near "
        "1/√20 = .224 on 12 + 8 clusters: more layers or another activation do not help.",
        published="half of the points break at .24 (ReLU), .245 (MLP), .218 (Tanh, LogReg); all by .29 (±.01)",
        checks=(
            within(Quantity("median radius", model="ReLU"), 0.24, 0.03),
            within(Quantity("median radius", model="Tanh"), 0.218, 0.03),
            within(Quantity("median radius", model="LogReg"), 0.218, 0.03),
            *(
                at_most(Quantity("accuracy", model=model, radius=0.3077), 0.05, 0.0)
                for model in ("ReLU", "Tanh", "LogReg")
            ),
            *(  # half of √2/2
                at_most(Quantity("median radius", model=model), 0.35, 0.245) for model in ("MLP(4)", sizes.HALF)
            ),
        ),
        reason="The number of the four-layer net, .245, cannot be tested: it depends on the start, which is not "
        "published. At paper scale (one seed) we found .213 from the He start, .232 from .7 and .244 from half of it; "
        "at quick size .244, .276 and .290. All are far below √2/2, which is the claim.",
    ),
    compared(
        id="B9",
        sentence="The robust accuracy of the trained pReLU net (p = 3) is that of the Bayes classifier at "
        "every radius (compared from .66 to .725, where both fall from 1 to 0).",
        published="the lines coincide: 1.0 at .667, .91-.93 at .692, 0 at .718 (±.01)",
        checks={
            "quick": (at_most("largest gap between pReLU and Bayes", 0.15, 0.01),),
            "paper": (at_most("largest gap between pReLU and Bayes", 0.03, 0.01),),
        },
        reason="It needs a start with |v| = |w|, as in the paper's theory, and long training. From a Gaussian start at "
        "D = 2000 one neuron may serve two centres: two of two seeds from 1e-7, one of two from .01 (n = 5000) held "
        "far less than Bayes. At quick size the gap was .11 and .08 at loss 1e-3, .01 at 1e-4, and larger before.",
    ),
    started(
        id="B10",
        sentence="A regular polynomial ReLU net Σ v σ(⟨w,x⟩)³, without normalised neurons, is fragile although it "
        "starts small (entries of standard deviation .01) and can represent the same functions.",
        published="at D = 2000: .99 at 0, .88 at .05, .59 at .1, .31 at .15, .16 at .2, .10 at .3, .05 at .5",
        checks={
            "quick": (
                # at .2 seeds differ, from .2 to .8
                at_most(Quantity("not broken", net="polynomial, small", radius=0.4), 0.3),
                at_most(Quantity("not broken", net="polynomial, small, trained on", radius=0.4), 0.3),
                at_least(Quantity("proven", net="pReLU, small", radius=0.4), 0.75),
            ),
            "paper": (
                *_read("polynomial, small", 0.05, 0.1, 0.2),
                at_least(Quantity("proven", net="pReLU, small", radius=0.4), 0.85, 1.0),
            ),
        },
        reason={
            "quick": SENTENCE,
            "paper": UNKNOWN
            + "Where every training point is right for the first time all outputs are still below 1e-3 "
            "and the net is even weaker than plotted.",
        },
    ),
    started(
        id="B11",
        sentence="A large start (entries of standard deviation .5) makes a pReLU net (p = 3) less robust than a small "
        "one does.",
        published="at D = 2000: robust accuracy 1.0 at .34, .75 at .5, .36 at .65, .03 at .7; small start: 1.0 to .667",
        checks={
            "quick": (
                at_most(Quantity("not broken", net="pReLU, large", radius=0.5), 0.2),
                at_least(Quantity("proven", net="pReLU, small", radius=0.5), 0.75),
            ),
            "paper": (
                *_read("pReLU, large", 0.34, 0.5, 0.65),
                at_least(Quantity("proven", net="pReLU, small", radius=0.5), 0.85, 1.0),
            ),
        },
        reason={
            "quick": SENTENCE,
            "paper": UNKNOWN + "From entries of .5 in 2000 dimensions |w| is 22 and everything breaks by .3; with "
            "n=5000, training on to 1e-20 gives .82 at .34, and entries of about .02 give nearly the plotted curve.",
        },
    ),
    started(
        id="B12",
        sentence="A regular polynomial ReLU net is fragile from a large start too (entries of standard deviation .5).",
        published="at D = 2000: robust accuracy 1.0 at .05, .91 at .1, .48 at .15, .27 at .2, .11 at .5",
        checks={
            "quick": (
                at_most(Quantity("not broken", net="polynomial, large", radius=0.2), 0.3),
                at_least(Quantity("proven", net="pReLU, small", radius=0.2), 0.75),
            ),
            "paper": (
                *_read("polynomial, large", 0.1, 0.15, 0.2),
                at_least(Quantity("proven", net="pReLU, small", radius=0.2), 0.85, 1.0),
            ),
        },
        reason={
            "quick": SENTENCE,
            "paper": UNKNOWN + "From entries of .5 in 2000 dimensions the net breaks below .05; entries of .1 to .25 "
            "would give the plotted curve.",
        },
    ),
    said(
        id="B15",
        sentence="Neurons that start nudged by 5 % towards a random centre (a non-degenerate start) align sooner than "
        "neurons in random directions.",
        where="Fig. 6",
        standing=Standing.READ_OFF,
        published="median cosine ≈ 1 at step ≈ 175 instead of ≈ 260: a share of .67",
        settings="D=1000, 5+5 clusters, α=.1, n=5000, p=3, squared loss, start 1e-7, as published; h=200 is ours; by "
        "gradient flow, .4 of which is a step (rate .2, plotted loss without the ½)",
        experiment="mv25.phases.nudged_start",
        checks=(at_most(Quantity("share of the random start's time", reading="as printed"), 0.8, 0.67),),
        why=(
            at_least(Quantity("share of the random start's time", reading="as printed"), 0.9),
            at_most(Quantity("share of the random start's time", reading="of a unit weight"), 0.9, 0.67),
            Check(Quantity("step of median cosine .9", reading="of a unit weight"), 145, 205, 175),
        ),
        reason="w + .05 (μ − w) hardly turns a w of length √D = 32, as printed with entries N(0, 1): it moves the "
        "cosine by .0017 where random ones are .04. The plotted times come out if w is brought to length 1 before it "
        "is nudged.",
        expects=Verdict.ARTEFACT,
    ),
    phases(
        id="B13",
        sentence="From a small start directions come first and norms later: the neurons have turned to the centres "
        "before the loss begins to fall.",
        published="median cosine .9 at step ≈ 240; loss at its start until ≈ 320, ≈ 0 at ≈ 460",
        checks={
            # 60: the published 80 less its error; the median over 200 neurons scatters by 20 steps between seeds
            "quick": (at_least("steps from alignment to the fall of the loss", 60, 80),),
            "paper": (
                at_least("steps from alignment to the fall of the loss", 60, 80),
                Check("step of median cosine .9", 190, 290, 240),
                Check("step at which the loss has lost 10 %", 310, 420, 320),
                Check("step at which the loss has lost 98 %", 400, 500, 460),
            ),
        },
    ),
    phases(
        id="B14",
        sentence="From a random small start the net reaches the ideal classifier: sup |f − F^(3)| over the unit "
        "sphere, without any factor, falls to about 0.",
        published="≈ 0 from step ≈ 490 on (plotted from .53 at the start, where f ≈ 0 makes it 1)",
        checks={
            "quick": (at_most("smallest distance", 0.04, 0.0), at_least("distance at the first look", 0.9)),
            "paper": (
                at_most("distance at step 490", 0.04, 0.0),  # read off within .02, and 10 steps
                at_most("smallest distance", 0.02, 0.0),
                at_least("distance at the first look", 0.9),
            ),
        },
    ),
    phases(
        id="B17",
        sentence="The neurons N_k that turned to a centre grow until their squared norms Σ |w_j|² add up to 1 ± Õ(α²), "
        "for every cluster (measured at the first look where the loss has lost 99.8 %, and so has arrived).",
        where="Prop. 4",
        standing=Standing.PRINTED,
        published="1 ± Õ(α²), α² = .01",
        reason="Where the loss has only lost 98 % the slowest cluster is on its way, and the sums are further from 1.",
        checks=(at_most("largest |sum of a cluster's |w|² − 1|", 0.1, 0.0),),
    ),
    said(
        id="B19",
        sentence="Exponential, logistic and squared loss share the alignment phase: until norms grow, the median "
        "cosine follows one curve (logistic at half speed).",
        where="App. A",
        published="the same alignment phase",
        settings=PHASES,
        experiment="mv25.phases.losses",
        checks=(
            at_most(Quantity("largest gap of the median cosine to that of the squared loss", loss="exp"), 0.05, 0.0),
            at_most(
                Quantity("largest gap of the median cosine to that of the squared loss", loss="logistic"), 0.05, 0.0
            ),
            at_least("median cosine when the first loss has lost 1 %", 0.9),
        ),
    ),
    said(
        id="B20",
        sentence="From a balanced start training conserves |v_j|² − |w_j|² and the signs of v_j: descent changes them "
        "only in proportion to its step.",
        where="Section 2 (and MMV24)",
        published="conserved by gradient flow",
        settings=filled(
            "D={dim}, {positive}+{negative} clusters, n={samples}, h={width}, p=3, squared loss to .01, plain descent "
            "at rates 1.6 and .4",
            sizes.PHASES,
        ),
        experiment="mv25.phases.balance",
        checks=(
            at_most(Quantity("largest change of |v|² − |w|²", finer=1), 1e-6, 0.0),
            at_least("change, coarse / 4 times finer", 2.5, 4.0),
            at_most(Quantity("sign flips of v", finer=1), 0, 0.0),
            at_most(Quantity("sign flips of v", finer=4), 0, 0.0),
        ),
        reason="Signs are safe only where |v_j| ≥ |w_j|: from N(0, 1) entries, where |v| is far smaller, some flip.",
    ),
    phases(
        id="B30",
        sentence="The net is near F^(3) only for a while: trained on, it fits the noise and the distance rises again.",
        where="Theorem 1, window [t*, T*]",
        standing=Standing.DERIVED,
        published="no number: the theorem bounds the distance on [t*, T*] only",
        settings={profile: f"{how}, {sizes.LOOKS[profile][-1]} steps" for profile, how in PHASES.items()},
        checks=(at_least("distance at the last look / smallest", 1.5), at_most("smallest distance", 0.04)),
        shown="distance at the last look / smallest",
    ),
    said(
        id="B16",
        sentence="For p > 2 and the squared loss, gradient flow comes within Õ(α²) of the ideal classifier F^(p), "
        "where α is the noise: the smallest sup |f − F^(3)| on the way falls at least about as fast as α².",
        where="Theorem 1",
        published="Õ(α²), an upper bound: slope 2 or more, up to logarithms",
        settings=filled(
            "α={alphas}; D=2/α², 2+2 clusters of 4/α² points, h=50, p=3, start α^32, by gradient flow",
            alphas=sizes.ALPHAS,
        ),
        experiment="mv25.theorems.rate",
        checks=(at_least("slope of log distance against log α", 1.5, 2.0),),  # a logarithm costs .2-.4 of a slope here
        reason="D and the number of points must grow like α^−2, as the theorem asks: with both fixed the error of the "
        "cluster means, linear in α, leaves a slope of 1.2.",
    ),
    said(
        id="B21",
        sentence="A net within ν of F^(3) (sup over the unit sphere) holds at radius (√2 − 8 ν^(1/3))/2 for nearly all "
        "points; the promise says something only for ν ≤ .0055.",
        where="Prop. 3",
        published="robust accuracy at least 1 − 2K exp(−D ν^(2/3)/(2K²α²)) − 4 exp(−3/(8α²)) at that radius",
        settings=filled(
            "D={dim}, {positive}+{negative} clusters, α={alpha}; F^(3) changed by ν = 1e-5 to 5e-3 in four ways; "
            "{points} points, proven",
            sizes.PROPOSITION3,
        ),
        experiment="mv25.theorems.closeness",
        checks=(
            at_least("smallest proven share less the promised one", 0.0),
            at_least("smallest proven radius / promised one", 1.0),
            at_least("largest promised share", 0.5),  # the bound is not empty here
            at_least("smallest distance / ν", 0.98),
            at_most("largest distance / ν", 1.001),
        ),
    ),
)
