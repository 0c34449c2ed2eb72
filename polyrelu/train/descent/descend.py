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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from polyrelu.checks import checked
from polyrelu.data import BLOCK, Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.train.descent.mean_gradient import Batches, gradient_of, logit_columns, outputs_of
from polyrelu.train.losses import check_loss, class_margins, log_add, loss_slopes
from polyrelu.train.stopping import LN10, Status, Until, as_until
from polyrelu.train.training_run import ReferenceDirections, TrainingRun
from polyrelu.train.trajectory import Trajectory

METHODS = ("gd", "sgd", "adam")
RATE_RISE, RATE_FALL = 2 ** (1 / 5), 2 ** (1 / 10)  # factors of the loss-based rate after an epoch (Lyu & Li 2020)
LEAST_RATE = 1e-9  # the loss-based rate does not fall below
ADAM_EPS = 1e-8  # beside the root of the second moment (Kingma & Ba, ICLR 2015)
LONG_PASS = 20_000  # rows; a pass over more is long, and reported after every so many

EachEpoch = Callable[[int, nn.Module], bool | None]  # epoch and net; True ends the run


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
    each_epoch: EachEpoch | None = None,
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

    ``progress`` gets an update after every pass, and within longer ones after every 20 000 rows. A KeyboardInterrupt,
    from it or from the keyboard, ends the run with Status.INTERRUPTED. Where passes are long nobody waits for another:
    the weights are those after the last whole one, the loss the mean over its batches, accuracy and margin nan.
    """
    until = as_until(until)
    check_loss(loss)
    _check(net, data, method, rate, steps, batch, every)
    require(0 < unit < math.inf, "unit", unit, "a finite number > 0")
    require(all(map(math.isfinite, checkpoints)), "checkpoints", list(checkpoints), "log10 losses such as -10")
    neurons = isinstance(net, PolyReLUNet) or until.alignment is None
    require(neurons, "until.alignment", until.alignment, "a PolyReLUNet, whose neurons have directions")
    options = DescentOptions(
        method, rate, loss, batch, loss_based, seed, steps, every, until, checkpoints, weights, unit,
        progress or Progress(), each_epoch,
    )  # fmt: skip
    return Descent(copy.deepcopy(net), data, options, after).run()


@dataclass(frozen=True, eq=False)
class DescentOptions:
    """The arguments of `descend`, checked; it explains them."""

    method: str
    rate: float
    loss: str
    batch: int
    loss_based: bool
    seed: int
    steps: int
    every: int
    until: Until
    checkpoints: Sequence[float]
    weights: Tensor | None
    unit: float
    progress: Progress
    each_epoch: EachEpoch | None


@dataclass
class DescentPoint:
    """Where a descent stands: updates, their summed rates, passes over the data, and what the data said last."""

    step: int
    time: float
    passes: float
    log_loss: float = math.nan
    accuracy: float = math.nan
    margin: float = math.nan

    @property
    def tau(self) -> float:
        """The clock counts updates."""
        return float(self.step)

    @property
    def log_t(self) -> float:
        """Natural log of rate x steps."""
        return math.log(self.time) if self.time > 0 else -math.inf


class Saved(NamedTuple):
    """A point with its weights."""

    point: DescentPoint
    weights: dict[str, Tensor]


class Descent(TrainingRun):
    """A descent under way."""

    point: DescentPoint

    def __init__(self, net: nn.Module, data: Dataset, options: DescentOptions, after: Trajectory | None) -> None:
        super().__init__(options.until, options.progress, after)
        self.net, self.data, self.options, self.rate = net, data, options, options.rate
        names = ("method", "rate", "loss", "batch", "loss_based", "seed")
        self.settings = {name: getattr(options, name) for name in names} | {"samples": len(data)}
        self.dtype = next(net.parameters()).dtype
        self.trained = [p for p in net.parameters() if p.requires_grad]
        self.optimiser: torch.optim.Optimizer = (
            adam(net, options.rate, options.unit)
            if options.method == "adam"
            else torch.optim.SGD(self.trained, lr=options.rate)
        )
        self.gradient = gradient_of(net, options.loss)
        batch = None if options.method == "gd" else options.batch
        self.batches = Batches(data, self.dtype, batch, self.gradient.rows, options.weights)
        self.reference = ReferenceDirections.from_net(net, data) if isinstance(net, PolyReLUNet) else None
        self.point = DescentPoint(0, 0.0, 0.0)
        if after is not None:
            self.point = DescentPoint(int(after.history.clock[-1]), after.time, after.evaluations)
        self.generator = torch.Generator().manual_seed(options.seed + self.point.step)
        self.measure()
        levels = [level for level in options.checkpoints if self.point.log_loss > level * LN10]
        self.levels = sorted(levels, reverse=True)
        self.good = self.saved()
        self.passed: Saved | None = None  # the last whole pass, if the last measurement was before it
        self.epochs, self.enough = 0, False
        if after is None:
            self.note()

    @property
    def evaluations(self) -> float:
        """Passes over the data so far."""
        return self.point.passes

    def begin(self) -> None:
        """Show the net as it is."""
        self.show()

    def show(self) -> None:
        """Hand the net over after an epoch; perhaps that is enough."""
        look = self.options.each_epoch
        try:
            self.enough = look is not None and bool(look(self.epochs, self.net))
        except TypeError as error:
            inside = error.__traceback__ and error.__traceback__.tb_next  # raised by the function, not by its call
            require(bool(inside), "each_epoch", look, f"a function of epoch and net ({error})")
            raise

    def exhausted(self) -> Status | None:
        """Whether all steps are made, or somebody has seen enough."""
        return Status.BUDGET if self.point.step >= self.options.steps or self.enough else None

    def advance(self) -> Status | None:
        """``every`` passes over the data, then loss, accuracy and margin; a status if the loss is not finite."""
        every = self.options.every
        for _ in range(every):
            if self.exhausted() is None:
                self.epoch()
                self.epochs += 1
                self.show()
                if every > 1:
                    self.passed = self.whole_pass()
                    self.report(self.running_loss)
        if not self.options.loss_based:  # that rate has measured already
            self.measure()
        if self.keep():
            return None
        self.restore(self.good)
        return Status.DIVERGED

    def interrupted(self) -> None:
        """Back to the last whole pass, where passes are long, or else to the last measurement."""
        if self.passed is not None:
            self.restore(self.passed)
            self.keep()
        elif self.options.every > 1 and not self.options.loss_based and len(self.data) <= LONG_PASS:
            self.measure()
            self.keep()
        self.restore(self.good)

    def totals(self) -> dict[str, float]:
        """Parameter updates made so far, as ``steps``."""
        return {"steps": float(self.point.step)}

    def network(self) -> nn.Module:
        """The net itself."""
        return self.net

    def measure(self) -> None:
        """Log of the mean loss, accuracy and smallest margin on the whole training set."""
        total, correct, smallest = -math.inf, 0.0, math.inf
        with torch.no_grad():
            for start, x in self.data.blocks(BLOCK):
                y, *log_weight = self.batches.labels(slice(start, start + len(x)))
                f = logit_columns(self.net, x.to(self.dtype))
                log_loss = sum(log_weight, loss_slopes(self.options.loss, f, y).log_loss)
                total = log_add(total, float(log_loss.double().logsumexp(0)))
                margins = class_margins(f, y).amin(1)
                right = margins > 0
                correct += float(right.sum() if log_weight == [] else log_weight[0].exp()[right].sum())
                smallest = min(smallest, float(margins.min()))
        self.point.log_loss = total - math.log(len(self.data))
        self.point.accuracy, self.point.margin = correct / len(self.data), smallest

    def saved(self) -> Saved:
        """All that belongs to this point."""
        return Saved(replace(self.point), copy.deepcopy(self.net.state_dict()))

    def whole_pass(self) -> Saved | None:
        """This point with what is known of it without another pass, if such a pass takes long."""
        if len(self.data) <= LONG_PASS or self.options.loss_based:
            return None
        point, weights = self.saved()
        return Saved(replace(point, log_loss=self.running_loss, accuracy=math.nan, margin=math.nan), weights)

    def keep(self) -> bool:
        """Record this point as the one to fall back to; False if its loss is not finite."""
        if math.isnan(self.point.log_loss) or self.point.log_loss == math.inf:
            return False
        self.good, self.passed = self.saved(), None
        self.note()
        self.keep_copies(self.point, lambda: copy.deepcopy(self.net))
        return True

    def restore(self, earlier: Saved) -> None:
        """Back to a point saved before."""
        self.net.load_state_dict(earlier.weights)
        self.point = replace(earlier.point)

    def epoch(self) -> None:
        """One pass over the data; with the loss-based rate it is undone if the loss did not fall."""
        loss_based, point = self.options.loss_based, self.point
        frame = point.log_loss if loss_based else 0.0
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * group.get("share", 1.0)
        before = (self.saved(), copy.deepcopy(self.optimiser.state_dict())) if loss_based else None
        rows, total, whole = 0, -math.inf, len(self.data)
        for parts, n in self.batches(self.generator):
            total = log_add(total, self.gradient(parts, n, frame) + math.log(n))
            self.optimiser.step()
            point.step, point.time, point.passes = point.step + 1, point.time + self.rate, point.passes + n / whole
            rows += n
            self.running_loss = total - math.log(rows)
            if point.step >= self.options.steps:
                break
            if rows // LONG_PASS > (rows - n) // LONG_PASS and rows < whole:
                self.report(self.running_loss)
        if before is not None:
            self.adapt_rate(*before)

    def adapt_rate(self, earlier: Saved, optimiser: dict[str, Any]) -> None:
        """The loss-based rule: a larger rate if the loss fell, else a smaller one, and the epoch is undone."""
        self.measure()
        if self.point.log_loss < earlier.point.log_loss:
            self.rate = min(self.rate * RATE_RISE, 1.0)
            return
        self.net.load_state_dict(earlier.weights)
        self.optimiser.load_state_dict(optimiser)
        self.point = replace(earlier.point, step=self.point.step, passes=self.point.passes)
        self.rate = max(self.rate / RATE_FALL, LEAST_RATE)

    def note(self) -> None:
        """Add the point, log |theta| and the state of the neurons to the history."""
        squares = sum(float(p.detach().double().square().sum()) for p in self.trained)
        self.record(self.point, 0.5 * math.log(squares or 1e-300), self.neuron_values(self.net))


def adam(net: nn.Module, rate: float, unit: float = 1.0) -> torch.optim.Adam:
    """Adam that moves a PolyReLUNet as it would for rows (x - centre) / unit, without dividing them.

    f is of degree d in x - centre (1 if inputs are normalised, else p), so v = unit^-d v' where v' would be the output
    weights for the smaller rows: their steps are unit^-d times as long, their gradients unit^d times as large.
    """
    output = net.output if isinstance(net, PolyReLUNet) else None
    log_small = -input_degree(net.p, net.normalise_input) * math.log(unit) if isinstance(net, PolyReLUNet) else 0.0
    allowed = "rows whose length, to the power p, a float holds: scale X, or train with normalise_input"
    require(abs(log_small) < 700, "unit", unit, allowed)
    small = math.exp(log_small)
    groups = []
    for value in net.parameters():
        share = small if value is output else 1.0
        if value.requires_grad:
            groups.append({"params": [value], "share": share, "lr": rate * share, "eps": ADAM_EPS / share})
    return torch.optim.Adam(groups, fused=True)


def input_degree(p: float, normalise_input: bool) -> float:
    """The degree of a PolyReLUNet in x - centre."""
    return 1.0 if normalise_input else p


def _check(net: nn.Module, data: Dataset, method: str, rate: float, steps: int, batch: int, every: int) -> None:
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
