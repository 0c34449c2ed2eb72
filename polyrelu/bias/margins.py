"""Margins of a homogeneous net (Lyu & Li, ICLR 2020), with losses of 1e-5000 stored as logarithms.

    q_i = y_i f(x_i)   or   f_y - max_{c != y} f_c;   rho = |theta|,  L = degree,  S = sum_i l(q_i)
    normalised  q_min / rho^L          smoothed  l^-1(S) / rho^L          product  q_min / prod_i |w_i|^(k_i)
    l^-1(N l(q_min - log(C-1)))  <=  l^-1(S)  <=  q_min        (C classes, N samples; exp, C = 2: q_min - log N)

exp: l^-1(S) = log(1/S), for S < 1.  logistic and cross_entropy: l^-1(S) = -log(e^S - 1), for S < log 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from polyrelu.bias import homogeneity
from polyrelu.bias.homogeneity import Groups
from polyrelu.checks import checked, checked_output, finite_number, plain_tensor
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.train import Trajectory, check_loss, class_margins, loss_slopes
from polyrelu.train import margin_gradients as gradients

LARGEST_LOSS = {"exp": ("1", 1.0), "logistic": ("log 2", math.log(2)), "cross_entropy": ("log 2", math.log(2))}


@final
@dataclass(frozen=True, eq=False)
class Margins:
    """What `margins` measures.

    ``values`` (n,) the q_i, float64; ``smallest`` = q_min at row ``sample``; ``degree`` = L; ``log_rho`` = log |theta|;
    ``normalised``, ``smoothed`` (with its lower bound ``lower``) and ``product`` as above; ``log_loss`` = natural log
    of the summed loss, ``log10_loss`` = decimal log of the mean loss. Before the data are separated ``normalised`` and
    ``product`` are negative; ``smoothed`` and ``lower`` are NaN while ``reason`` is not empty.
    """

    values: Tensor
    smallest: float
    sample: int
    degree: float
    log_rho: float
    normalised: float
    smoothed: float
    lower: float
    product: float
    log_loss: float
    log10_loss: float
    reason: str

    @property
    def separated(self) -> bool:
        """Whether every q_i > 0."""
        return self.smallest > 0


@final
@dataclass(frozen=True)
class Monotone:
    """``largest_fall`` below an earlier value, first reached at index ``where``; ``ok`` if within the tolerance."""

    ok: bool
    largest_fall: float
    where: int


@final
@dataclass(frozen=True, eq=False)
class MarginHistory:
    """Margins along a run, one entry per recorded moment.

    ``normalised`` = q_min / rho^L (NaN where q_min underflowed); ``log_smoothed`` = natural log of the smoothed margin,
    NaN while the summed loss is too large; ``log10_loss`` of the mean loss; ``monotone``: of ``log_smoothed``, so its
    fall is relative; None if the loss never came low enough.
    """

    log_rho: NDArray[np.float64]
    normalised: NDArray[np.float64]
    log_smoothed: NDArray[np.float64]
    log10_loss: NDArray[np.float64]
    monotone: Monotone | None


@checked
def margins(net: nn.Module, data: Dataset, loss: str = "exp", layers: Groups | None = None) -> Margins:
    """The three margins of Lyu & Li (module docstring), streamed in float64. O(n) forward passes: O(n h D) if shallow.

    ``layers``: groups of parameter names, or `HomogeneousLayer`s, where detection would not find the right ones.
    """
    words, limit = _largest_loss(loss)
    unit = homogeneity.unit_norm_net(net, data.rows(0, min(len(data), homogeneity.TRIAL_ROWS)), layers)
    log_size = unit.degree * unit.log_rho
    require(log_size < 700, "|theta|^L", f"e^{log_size:.0f}", "below e^700")
    values, logs, classes = [], [], 2
    for _, f, y in logits(unit.net, data):
        values.append(class_margins(f, y).amin(dim=1))
        logs.append(loss_slopes(loss, f * math.exp(log_size), y).log_loss.logsumexp(0))
        classes = max(classes, f.shape[1])
    q = torch.cat(values)
    sample = int(q.argmin())
    normalised, log_loss = float(q[sample]), float(torch.stack(logs).logsumexp(0))
    smallest = normalised * math.exp(log_size)
    reason = ""
    if smallest <= 0:
        reason = f"not separated yet: the margin of row {sample} is {smallest:.3g} <= 0."
    elif log_loss >= math.log(limit):
        reason = f"the summed loss is {math.exp(log_loss):.3g}; a smoothed margin needs it below {words}."
    smoothed = lower = math.nan
    if not reason:
        log_one = loss_slopes(loss, torch.tensor([[smallest - math.log(classes - 1)]]).double(), torch.ones(1)).log_loss
        low, middle = (float(_inverse_loss(at, loss)) for at in (float(log_one) + math.log(len(q)), log_loss))
        slack = 1e-9 * (1 + abs(smallest))
        if not low - slack <= middle <= smallest + slack:
            raise ArithmeticError(f"smoothed margin {middle} outside its bounds [{low}, {smallest}]: please report.")
        lower, smoothed = low * math.exp(-log_size), middle * math.exp(-log_size)
    logs_of_layers = math.fsum(k.degree * norm for k, norm in zip(unit.layers, unit.log_norms, strict=True) if k.degree)
    product = normalised * math.exp(log_size - logs_of_layers) if math.isfinite(logs_of_layers) else math.nan
    return Margins(
        values=q * math.exp(log_size),
        smallest=smallest,
        sample=sample,
        degree=unit.degree,
        log_rho=unit.log_rho,
        normalised=normalised,
        smoothed=smoothed,
        lower=lower,
        product=product,
        log_loss=log_loss,
        log10_loss=(log_loss - math.log(len(q))) / math.log(10),
        reason=reason,
    )


def logits(net: nn.Module, data: Dataset) -> Iterator[tuple[int, Tensor, Tensor]]:
    """(start, f (b, C), y (b,)) block by block for a float64 net; y is +-1 if C = 1, else 0..C-1."""
    for start, X in data.blocks():
        with torch.no_grad():
            f = torch.cat([checked_output(net, part, "net") for part in torch.split(X.double(), gradients.chunk(net))])
        f, y = f.reshape(len(X), -1), data.y[start : start + len(X)]
        good = f.shape[1] == 1 if data.binary else f.shape[1] >= max(2, data.classes)
        kind = "labels +1/-1" if data.binary else f"{data.classes} classes"
        require(good, "net", f"{f.shape[1]} logits for {kind}", "one logit for +1/-1, else a logit for every class")
        require(bool(f.isfinite().all()), "net", "NaN or infinity in its logits", "finite weights")
        yield start, f, y.double() if data.binary else y


def checked_margins(logits: Tensor, y: Tensor) -> Tensor:
    """y f for one logit (n,), f_y - max_{c != y} f_c for several (n, C); (n,)."""
    if logits.ndim == 1:
        return y.to(logits) * logits
    index = y.long()[:, None]
    good = bool(((index >= 0) & (index < logits.shape[1])).all())
    require(good, "labels", sorted(set(y.tolist()))[:5], f"0 to {logits.shape[1] - 1} for {logits.shape[1]} logits")
    return logits.gather(1, index)[:, 0] - logits.scatter(1, index, -torch.inf).amax(dim=1)


@checked
def smoothed_log_margin(
    log_loss_sum: ArrayLike, log_rho: ArrayLike, degree: float, loss: str = "exp"
) -> NDArray[np.float64]:
    """log( l^-1(S) / rho^L ) from log S and log rho, elementwise; NaN where S >= 1 (exp) or log 2 (logistic)."""
    _largest_loss(loss)
    rho = plain_tensor("log_rho", log_rho).double().numpy()
    inverse = _inverse_loss(plain_tensor("log_loss_sum", log_loss_sum).double().numpy(), loss)
    log_inverse = np.log(np.where(inverse > 0, inverse, np.nan))
    return np.asarray(log_inverse - degree * rho, dtype=np.float64)


@checked
def monotone(values: ArrayLike, tolerance: float = 0.0) -> Monotone:
    """Largest fall max_{s <= t} values_s - values_t (of the running maximum, so small falls add up). O(T).

    Entries before the first number are skipped; a later NaN (the loss rose again) is an infinite fall.
    """
    numbers = plain_tensor("values", values).double().numpy()
    known = np.flatnonzero(~np.isnan(numbers))
    require(numbers.ndim == 1 and known.size > 0, "values", "no numbers", "a list with at least one number")
    first = int(known[0])
    best = np.fmax.accumulate(numbers[first:])
    with np.errstate(invalid="ignore"):  # infinity beside infinity has not fallen
        fall = np.where(best == numbers[first:], 0.0, best - numbers[first:])
    fall = np.where(np.isnan(numbers[first:]), np.inf, fall)
    where = int(fall.argmax())
    return Monotone(bool(fall[where] <= tolerance), float(fall[where]), first + where)


def margin_history(trajectory: Trajectory, layers: Groups | None = None, tolerance: float = 1e-8) -> MarginHistory:
    """Margins at every recorded moment, and whether the smoothed one ever fell (Thm 4.1 of Lyu & Li). O(T)."""
    complete = all(hasattr(trajectory, name) for name in ("net", "history", "settings"))
    require(complete, "trajectory", type(trajectory).__name__, "a Trajectory")
    tolerance = finite_number("tolerance", tolerance, least=0)
    history, settings = trajectory.history, trajectory.settings
    require(len(history.clock) > 0, "trajectory", "no recorded moments", "a run with at least one")
    log_rho, q = (np.asarray(getattr(history, name, ()), np.float64) for name in ("log_rho", "min_margin"))
    recorded = log_rho.size == q.size == len(history.clock) and "samples" in settings
    require(recorded, "trajectory", "no margins recorded", "one made by this version")
    degree = math.fsum(layer.degree for layer in homogeneity.layers(trajectory.net, groups=layers))
    with np.errstate(divide="ignore", over="ignore"):
        normalised = np.sign(q) * np.exp(np.log(np.abs(q)) - degree * log_rho)
    normalised[(q == 0) & (degree * log_rho < -700)] = np.nan
    smoothed = smoothed_log_margin(history.log_loss + math.log(settings["samples"]), log_rho, degree, settings["loss"])
    never = bool(np.isnan(smoothed).all())
    return MarginHistory(
        log_rho=log_rho,
        normalised=normalised,
        log_smoothed=smoothed,
        log10_loss=history.log_loss / math.log(10),
        monotone=None if never else monotone(smoothed, tolerance),
    )


def _largest_loss(loss: str) -> tuple[str, float]:
    require(check_loss(loss) in LARGEST_LOSS, "loss", loss, "exp, logistic or cross_entropy (others have no margin)")
    return LARGEST_LOSS[loss]


def _inverse_loss(log_loss: ArrayLike, loss: str) -> NDArray[np.float64]:
    """l^-1 of a loss given by its log; far left -log(e^z - 1) = -(log z + z/2)."""
    log_z = np.asarray(log_loss, dtype=np.float64)
    if loss == "exp":
        return -log_z
    z = np.exp(np.clip(log_z, -15, 700))
    return -np.where(log_z < -15, log_z + np.exp(np.minimum(log_z, -15)) / 2, z + np.log(-np.expm1(-z)))
