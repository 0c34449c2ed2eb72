"""Gradient descent as the papers ran it: GD, SGD and Adam, with a constant or a loss-based rate.

    theta <- theta - eta grad L(theta)            full batch, or L over a batch of a shuffled epoch
    loss-based rate (Lyu & Li 2020):  eta = a / L(previous epoch);  the epoch's loss fell: a <- a 2^(1/5),
    otherwise the epoch is rolled back and a <- a / 2^(1/10);  a stays in [1e-9, 1]

The gradient of L relative to a frame, exp(log L_batch - log L_epoch) grad log L_batch, is computed in log domain, so
losses far below floating point (1e-800) still train. Works for any module that maps (n, D) to (n,) or (n, C).
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from polyrelu.checks import checked
from polyrelu.data import BLOCK, Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.train.descent.backward import gradient_of, logits, outputs_of
from polyrelu.train.descent.batches import Batches
from polyrelu.train.losses import check_loss, class_margins, log_add, pull
from polyrelu.train.recorder import ReferenceDirections, look, met
from polyrelu.train.stopping import Status, Until
from polyrelu.train.trajectory import History, Trajectory, thinned

METHODS = ("gd", "sgd", "adam")
MOMENT = ("step", "time", "passes", "log_loss", "accuracy", "margin")
RISE, FALL, LOWEST = 2 ** (1 / 5), 2 ** (1 / 10), 1e-9
EPS = 1e-8  # Adam's
LONG = 20_000  # rows; a pass over more is long, and told of after every so many


@checked
def descend(
    net: nn.Module,
    data: Dataset,
    *,
    method: str = "gd",
    rate: float = 0.2,
    loss: str = "exp",
    until: float | Until = 1e-2,
    steps: int = 10_000,
    batch: int = 100,
    loss_based: bool = False,
    every: int = 1,
    checkpoints: Sequence[float] = (),
    seed: int = 0,
    progress: Progress | None = None,
    after: Trajectory | None = None,
    each_epoch: Callable[[int, nn.Module], bool | None] | None = None,
    weights: Tensor | None = None,
    unit: float = 1.0,
) -> Trajectory:
    """Train a copy of ``net`` by descent on the mean loss; the same Trajectory as ``flow``.

    Parameters
    ----------
    method : "gd" (one step per pass, streamed over blocks), "sgd" or "adam" (batches of a shuffled epoch)
    rate : learning rate; with ``loss_based`` the starting value of ``a`` above
    steps : at most this many parameter updates
    every : passes over the data between two checks of the loss on the whole training set
    checkpoints : log10 losses at which, or just below which, to keep a copy (``Trajectory.checkpoints``)
    after : go on from an earlier run (its steps, time and history); ``net`` should be its network. Adam's moments and
        the value ``a`` of the loss-based rate start anew, and shuffling goes on with other numbers.
    each_epoch : called with 0 and the net at the start, and with k and the net after the k-th pass over the data; if
        it gives True the run ends there, as if its steps were spent
    weights : (n,) weights >= 0 of the samples; only their ratios matter. Loss and accuracy are then weighted means
    unit : Adam on a PolyReLUNet moves as it would for rows (x - centre) / unit; see `adam`

    ``progress`` is told after every pass, and within those over more than 20 000 rows. A KeyboardInterrupt, from it or
    from the keyboard, ends the run with Status.INTERRUPTED. Where passes are long nobody waits for another: the weights
    are those after the last whole one, the loss the mean over its batches, accuracy and margin nan.
    """
    until = Until.of(until)
    check_loss(loss)
    check(net, data, method, rate, steps, batch, every)
    require(0 < unit < math.inf, "unit", unit, "a finite number > 0")
    require(all(map(math.isfinite, checkpoints)), "checkpoints", list(checkpoints), "log10 losses such as -10")
    neurons = isinstance(net, PolyReLUNet) or until.alignment is None
    require(neurons, "until.alignment", until.alignment, "a PolyReLUNet, whose neurons have directions")
    settings: dict[str, Any] = {
        "method": method, "rate": rate, "loss": loss, "batch": batch, "loss_based": loss_based, "seed": seed,
    }  # fmt: skip
    run = Descent(
        copy.deepcopy(net), data, checkpoints=checkpoints, after=after, weights=weights, unit=unit, **settings
    )
    progress = progress or Progress()

    def look_on(epoch: int, net: nn.Module) -> Any:
        try:
            return each_epoch(epoch, net) if each_epoch is not None else None
        except TypeError as error:
            inside = error.__traceback__ and error.__traceback__.tb_next  # raised by the function, not by its call
            require(bool(inside), "each_epoch", each_epoch, f"a function of epoch and net ({error})")
            raise

    def tell() -> None:
        progress.update(time=run.time, log_loss=run.underway, evaluations=run.passes, neurons=0)

    epoch, status = 0, run.verdict(until)
    try:
        enough = look_on(epoch, run.net)
        while status is None and run.step < steps and not enough:
            for _ in range(every):
                if run.step < steps and not enough:
                    run.epoch(steps, tell)
                    epoch += 1
                    enough = look_on(epoch, run.net)
                    if every > 1:
                        run.passed = run.whole_pass()
                        tell()
            if not loss_based:  # that rate has looked already
                run.measure()
            if not run.keep():
                status = Status.DIVERGED
                break
            progress.update(time=run.time, log_loss=run.log_loss, evaluations=run.passes, neurons=0)
            status = run.verdict(until)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        if run.passed is not None:
            run.restore(run.passed)
            run.keep()
        elif every > 1 and not loss_based and len(data) <= LONG:
            run.measure()
            run.keep()
    run.restore(run.good)
    return run.trajectory(status or Status.BUDGET, {**settings, "samples": len(data)})


class Descent:
    """A descent under way."""

    def __init__(
        self,
        net: nn.Module,
        data: Dataset,
        *,
        method: str,
        rate: float,
        loss: str,
        batch: int,
        loss_based: bool,
        checkpoints: Sequence[float],
        seed: int,
        after: Trajectory | None,
        weights: Tensor | None = None,
        unit: float = 1.0,
    ) -> None:
        self.net, self.data, self.loss, self.before = net, data, loss, after
        self.dtype = next(net.parameters()).dtype
        self.loss_based, self.rate, self.began = loss_based, rate, time.perf_counter()
        self.trained = [p for p in net.parameters() if p.requires_grad]
        self.optimiser: torch.optim.Optimizer = (
            adam(net, rate, unit) if method == "adam" else torch.optim.SGD(self.trained, lr=rate)
        )
        self.gradient = gradient_of(net, loss)
        self.batches = Batches(data, self.dtype, None if method == "gd" else batch, self.gradient.rows, weights)
        self.probes = ReferenceDirections.from_net(net, data) if isinstance(net, PolyReLUNet) else None
        self.moments: list[dict[str, Any]] = [] if after is None else after.history.moments()
        self.step = 0 if after is None else int(after.history.clock[-1])
        self.time = 0.0 if after is None else after.time
        self.passes = 0.0 if after is None else after.evaluations
        self.generator = torch.Generator().manual_seed(seed + self.step)
        self.measure()
        self.checkpoints = {} if after is None else dict(after.checkpoints)
        self.ahead = sorted((x for x in checkpoints if self.log_loss > x * math.log(10)), reverse=True)
        self.good = self.mark()
        self.passed: dict[str, Any] | None = None  # the last whole pass, if the last look was before it
        if after is None:
            self.note()

    def measure(self) -> None:
        """Log of the mean loss, accuracy and smallest margin on the whole training set."""
        total, correct, self.margin = -math.inf, 0.0, math.inf
        with torch.no_grad():
            for start, x in self.data.blocks(BLOCK):
                y, *log_weight = self.batches.labels(slice(start, start + len(x)))
                f = logits(self.net, x.to(self.dtype))
                log_loss = sum(log_weight, pull(self.loss, f, y).log_loss)
                total = log_add(total, float(log_loss.double().logsumexp(0)))
                margins = class_margins(f, y).amin(1)
                right = margins > 0
                correct += float(right.sum() if log_weight == [] else log_weight[0].exp()[right].sum())
                self.margin = min(self.margin, float(margins.min()))
        self.log_loss = total - math.log(len(self.data))
        self.accuracy = correct / len(self.data)

    def mark(self) -> dict[str, Any]:
        """All that belongs to this moment."""
        parts = {name: getattr(self, name) for name in MOMENT}
        return {**parts, "weights": copy.deepcopy(self.net.state_dict())}

    def whole_pass(self) -> dict[str, Any] | None:
        """This moment with what is known of it without another look, if such a look takes long."""
        unseen = {"log_loss": self.underway, "accuracy": math.nan, "margin": math.nan}
        return {**self.mark(), **unseen} if len(self.data) > LONG and not self.loss_based else None

    def keep(self) -> bool:
        """Record this moment as the one to fall back to; False if its loss is not finite."""
        if math.isnan(self.log_loss) or self.log_loss == math.inf:
            return False
        self.good, self.passed = self.mark(), None
        self.note()
        for level in [level for level in self.ahead if self.log_loss <= level * math.log(10)]:
            self.checkpoints[level] = copy.deepcopy(self.net)
            self.ahead.remove(level)
        return True

    def restore(self, moment: dict[str, Any]) -> None:
        """Back to a moment marked before."""
        self.net.load_state_dict(moment["weights"])
        for name in MOMENT:
            setattr(self, name, moment[name])

    def epoch(self, most: int, tell: Callable[[], None]) -> None:
        """One pass over the data; with the loss-based rate it is undone if the loss did not fall."""
        frame = self.log_loss if self.loss_based else 0.0
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * group.get("share", 1.0)
        before = (self.mark(), copy.deepcopy(self.optimiser.state_dict())) if self.loss_based else None
        rows, total = 0, -math.inf
        for parts, n in self.batches(self.generator):
            total = log_add(total, self.gradient(parts, n, frame) + math.log(n))
            self.optimiser.step()
            self.step, self.time, self.passes = self.step + 1, self.time + self.rate, self.passes + n / len(self.data)
            rows += n
            self.underway = total - math.log(rows)
            if self.step >= most:
                break
            if rows // LONG > (rows - n) // LONG and rows < len(self.data):
                tell()
        if before is None:
            return
        mark, optimiser = before
        self.measure()
        if self.log_loss < mark["log_loss"]:
            self.rate = min(self.rate * RISE, 1.0)
            return
        self.net.load_state_dict(mark["weights"])
        self.optimiser.load_state_dict(optimiser)
        for name in ("time", "log_loss", "accuracy", "margin"):
            setattr(self, name, mark[name])
        self.rate = max(self.rate / FALL, LOWEST)

    def note(self) -> None:
        """Record where the descent stands."""
        moment: dict[str, Any] = {
            "clock": self.step,
            "log_time": math.log(self.time) if self.time > 0 else -math.inf,
            "log_loss": self.log_loss,
            "accuracy": self.accuracy,
            "log_rho": 0.5 * math.log(sum(float(p.detach().double().square().sum()) for p in self.trained) or 1e-300),
            "min_margin": self.margin,
        }
        if self.probes is not None and isinstance(self.net, PolyReLUNet):
            moment |= look(self.net, self.probes)
        self.moments = thinned([*self.moments, moment])

    def verdict(self, until: Until) -> Status | None:
        """The first stop condition that holds."""
        log_time = math.log(self.time) if self.time > 0 else -math.inf
        return met(until, self.log_loss, log_time, self.accuracy, self.moments[-1])

    def trajectory(self, status: Status, settings: dict[str, Any]) -> Trajectory:
        """What is left of the run."""
        return Trajectory(
            net=self.net,
            status=status,
            history=History.of(self.moments),
            evaluations=self.passes,
            seconds=time.perf_counter() - self.began + (0.0 if self.before is None else self.before.seconds),
            counts={"steps": float(self.step)},
            settings=settings,
            checkpoints=self.checkpoints,
        )


def adam(net: nn.Module, rate: float, unit: float = 1.0) -> torch.optim.Adam:
    """Adam that moves a PolyReLUNet as it would for rows (x - centre) / unit, without dividing them.

    f is of degree d in x - centre (1 if inputs are normalised, else p), so v = unit^-d v' where v' would be the output
    weights for the smaller rows: their steps are unit^-d times as long, their gradients unit^d times as large.
    """
    output = net.output if isinstance(net, PolyReLUNet) else None
    log_small = -degree(net.p, net.normalise_input) * math.log(unit) if isinstance(net, PolyReLUNet) else 0.0
    allowed = "rows whose length, to the power p, a float holds: scale X, or train with normalise_input"
    require(abs(log_small) < 700, "unit", unit, allowed)
    small = math.exp(log_small)
    groups = []
    for value in net.parameters():
        share = small if value is output else 1.0
        if value.requires_grad:
            groups.append({"params": [value], "share": share, "lr": rate * share, "eps": EPS / share})
    return torch.optim.Adam(groups, fused=True)


def degree(p: float, normalise_input: bool) -> float:
    """The degree of a PolyReLUNet in x - centre."""
    return 1.0 if normalise_input else p


def check(net: nn.Module, data: Dataset, method: str, rate: float, steps: int, batch: int, every: int) -> None:
    """Refuse what cannot be trained, in words."""
    require(isinstance(data, Dataset), "data", type(data).__name__, "a Dataset")
    if isinstance(net, PolyReLUNet):
        require(
            net.is_plain(),
            "net",
            "weights too small for this dtype",
            "a larger scale, float64, or flow, which takes any",
        )
    found = outputs_of(net, data)
    outputs = 1 if data.binary else data.classes
    require(found == outputs, "net", f"{found} outputs", f"{outputs}, for the labels of {data.name}")
    require(method in METHODS, "method", method, f"one of {', '.join(METHODS)}")
    require(rate > 0 and math.isfinite(rate), "rate", rate, "a positive number")
    for name, value in (("steps", steps), ("batch", batch), ("every", every)):
        require(value >= 1, name, value, "a whole number >= 1")
