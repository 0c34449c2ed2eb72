"""Ten labels or two, with a small ResNet on MNIST and CIFAR-10 themselves, at every size (LPLL25 Fig. 3; C16, C17).

Nets, read-outs and attacks are those of C10 to C12, but 20 000 weights instead of 11 million: a minute or two each.
"""

from __future__ import annotations

from collections.abc import Callable

from polyrelu.claims.averaging_images import ATTACK, ODDS, OWN, READ_OUT, STRONGEST, gains, robustness
from polyrelu.claims.claim import Claim, Standing, at_least
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.image_nets import ImageTask, needs

MNIST = ImageTask("mnist-full", "parity", 1, 150, (0.4, 1.0), 0.4, samples=20_000, blocks=(1, 1, 1), width=8)
CIFAR = ImageTask("cifar10", "halves", 2, 150, (0.08, 0.24), 0.08, samples=20_000, blocks=(1, 1, 1), width=8)


def mnist(profile: Profile, seed: int, labels: str) -> Measured:
    """C16: odd or even digits."""
    return robustness(MNIST, seed, labels)[0]


def cifar(profile: Profile, seed: int, labels: str) -> Measured:
    """C17: first five classes or last five."""
    return robustness(CIFAR, seed, labels)[0]


def _experiment(run: Callable[..., Measured], task: ImageTask) -> Experiment:
    parts = [{"labels": labels} for labels in ("two", "ten")]
    return Experiment(run, lambda profile: parts, {"quick": 1, "paper": 3}, gains, lambda profile: needs(task))


RESNET = "ResNet of three stages of one step, 8, 16 and 32 channels, on 20 000 images, SGD with momentum .9, rate .1 "
RESNET += "falling to 0, weight decay 5e-4, batches of 128, {}; 150 test images attacked; " + ATTACK + "."
WEAK = "Only the order is compared: this net is far weaker than the published one."

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="C16",
        sentence="C10 with a small ResNet on MNIST itself: trained to tell ten digits, it is harder to fool about odd "
        "and even, whatever is attacked.",
        paper="LPLL25",
        where="Fig. 3, middle (MNIST)",
        standing=Standing.READ_OFF,
        published="ResNet-18: 97.8 against 96.2 % at radius .4, 87.8 against 75.3 % at 1 (±.5)",
        settings=RESNET.format("one epoch"),
        experiment=_experiment(mnist, MNIST),
        checks=(
            *(at_least(f"parity: {ODDS}, {how} at {r:g}", 0.0) for how in (OWN, READ_OUT) for r in MNIST.radii),
            at_least(f"parity: {ODDS}, {STRONGEST} at {MNIST.radius:g}", 0.0),
        ),
        reason=WEAK,
        shown=f"parity: {ODDS}, {STRONGEST} at {MNIST.radius:g}",
    ),
    Claim(
        id="C17",
        sentence="C11 with a small ResNet on CIFAR-10 itself: trained to tell ten classes, it is harder to fool about "
        "the first and the last five, whatever is attacked.",
        paper="LPLL25",
        where="Fig. 3, right (CIFAR-10)",
        standing=Standing.READ_OFF,
        published="ResNet-18: 96.7 against 94.6 % at radius .08, 90.4 against 84.5 % at .24 (±.5)",
        settings=RESNET.format("shifted and mirrored, two epochs"),
        experiment=_experiment(cifar, CIFAR),
        checks=(
            *(at_least(f"halves: {ODDS}, {how} at {r:g}", 0.0) for how in (OWN, READ_OUT) for r in CIFAR.radii),
            at_least(f"halves: {ODDS}, {STRONGEST} at {CIFAR.radius:g}", 0.0),
        ),
        reason=WEAK,
        shown=f"halves: {ODDS}, {STRONGEST} at {CIFAR.radius:g}",
    ),
)
