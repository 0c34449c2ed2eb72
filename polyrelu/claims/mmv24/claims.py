"""What Min, Mallada & Vidal (ICLR 2024) say, and where our numbers must lie for it to hold (E17-E20, E22, E27, E28)."""

from __future__ import annotations

from functools import partial

from polyrelu.claims import Check, Claim, Quantity, Standing, at_least, at_most
from polyrelu.claims.mmv24 import ALIGNED, FALLEN

TOY = "two unit points in the plane, 50 neurons, balanced start 1e-6, gradient descent at 2e-3, mean exponential loss"
ORDER = (
    at_least("iteration of the fall over iteration of the alignment", 1.2, published=1.5),
    at_least("largest cosine of the mean neurons to x+ and x-", 0.98, published=1.0),
    Check("fall of that cosine until the end", 1e-4, 0.15),
    at_most("stable rank at the end", 2.0, published=1.0),
)

said = partial(Claim, paper="MMV24", standing=Standing.PRINTED)
separable = partial(
    said,
    where="Theorem 1",
    settings={
        "quick": "d = n = h = 20, balanced start 1e-6, exponential loss by gradient flow to 1e-6",
        "paper": "d = n = h = 100, else the same",
    },
    experiment="mmv24.early_alignment.after_alignment",
)

CLAIMS: tuple[Claim, ...] = (
    said(
        id="E17",
        sentence="On centred images of 0 and 1 the mean neurons align with the class directions first, the loss falls "
        "later, and the first layer ends with stable rank near 1.",
        where="Fig. 5",
        standing=Standing.READ_OFF,
        published="MNIST: aligned after ~2000 iterations, loss falls after ~3000, rank < 2, |W|₂² ≈ 2 at 15 000",
        settings={
            "quick": "8×8 digits 0 and 1, 50 neurons N(0, 1e-12), flow for the time of 15 000 iterations at 2e-3",
            "paper": "MNIST digits 0 and 1, else the same",
        },
        experiment="mmv24.early_alignment.alignment",
        checks={
            "quick": ORDER,
            "paper": (
                *ORDER,
                at_least(Quantity("cosine of the mean neurons", iteration=ALIGNED), 0.98, published=1.0),
                Check("iteration at which the loss has lost a tenth", 2400, 3600, published=FALLEN),
            ),
        },
        reason={
            "quick": "8×8 images are shorter than MNIST's, so that norms take three times as long to grow; only the "
            "order of events is compared.",
            "paper": "",
        },
    ),
    said(
        id="E18",
        sentence="The less two positive points are correlated (μ), the longer neurons take to reach the cone S+ where "
        "they are active on both.",
        where="Appendix A",
        published="μ = sin .1: all live neurons in S+ by 7000; μ = sin .001: not at 7000, one still outside at 21 000",
        settings=TOY,
        experiment="mmv24.early_alignment.cones",
        checks=(
            at_most(Quantity("live neurons outside S+", mu="μ = sin .1", iteration=7000), 0.0, published=0.0),
            at_least(Quantity("live neurons outside S+", mu="μ = sin .001", iteration=7000), 1.0),
        ),
        reason="A flow would bring every neuron with v > 0 into S+ by 7600 iterations at μ = sin .001. Those still "
        "outside at 21 000 began with v < 0, and the finite step changed their sign; how many depends on the start.",
    ),
    said(
        id="E19",
        sentence="When only the first layer is trained (v = ±1), there are no two phases: directions and norms change "
        "together.",
        where="Appendix A",
        published="no two phases",
        settings=f"{TOY}; v = ±1 kept, or trained from ±|w|; μ = sin .1",
        experiment="mmv24.early_alignment.first_layer",
        checks=(
            at_most(Quantity("share of the time to half the loss spent on a plateau", trained="first layer only"), 0.1),
            at_least(Quantity("loss lost when the neurons have aligned", trained="first layer only"), 0.005),
            at_least(Quantity("share of the time to half the loss spent on a plateau", trained="both layers"), 0.5),
            at_most(Quantity("loss lost when the neurons have aligned", trained="both layers"), 1e-3),
        ),
        reason="With v = ±1 norms grow linearly from the first step, so that the plateau is gone. That the loss falls "
        "while neurons still turn is a matter of the step, which is 2000 times the start.",
    ),
    separable(
        id="E20",
        sentence="Once the neurons have aligned on orthogonally separable data, the loss falls like 1/t.",
        published="L(t) = O(1/t)",
        checks=(
            at_least("R² of 1/loss against time", 0.99),
            Check("slope of log loss against log time", -1.4, -1.0),
        ),
        reason="O(1/t) is an upper bound; a homogeneous net of degree 2 has L = Θ(1/(t log t)), a slope below −1.",
    ),
    separable(
        id="E22",
        sentence="There the first layer becomes nearly a matrix of two directions: ‖W‖_F² ≤ 2 ‖W‖₂² + O(ε).",
        published="stable rank ≤ 2",
        checks=(Check("largest |W|_F^2 / |W|_2^2", 1.0, 2.05, published=2.0),),
    ),
    said(
        id="E27",
        sentence="On two orthogonal positive points neurons turn to x1, x2 or x+ = x1 + x2, and those along x+ grow.",
        where="Appendix A",
        published="only neurons along x+ grow",
        settings=TOY,
        experiment="mmv24.early_alignment.orthogonal_points",
        checks=(
            at_least("share of live neurons along x1, x2 or x+", 0.9),
            at_least("share of the net carried by neurons along x+", 0.98),
            at_least("neurons along x1 or x2", 1.0),
        ),
        shown="share of the net carried by neurons along x+",
    ),
    said(
        id="E28",
        sentence="Batches do not change it: with SGD, too, the neurons turn first and the loss falls later.",
        where="Appendix A",
        published="two phases with batches of 2000",
        settings={
            "quick": "8×8 digits 0 and 1, 50 neurons N(0, 1e-12), SGD with batches of 32 at 2e-2 to loss .05",
            "paper": "MNIST digits 0 and 1, batches of 2000 at 2e-3, else the same",
        },
        experiment="mmv24.early_alignment.batches",
        checks=(
            at_least("step of the fall over step of the alignment", 1.2),
            at_least("log10 of the growth between alignment and fall", 2.0),
        ),
    ),
)
