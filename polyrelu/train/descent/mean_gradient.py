"""The gradient of a mean loss in the weights, over all rows or batches: exp(-frame) / n sum_i c_i dl_i/dtheta.

With u_j = w_j / r_j, r_j = |w_j|, z_ij = relu(<x_i, u_j>), g_i = c_i dl_i/df and the weights c_i of the samples (1 if
none are given) a PolyReLUNet (Min & Vidal 2024) has

    A_j = sum_i z_ij^p g_i                 dL/dv_j = r_j A_j                                  dL/db = sum_i g_i
    G_j = sum_i <v_j, g_i> z_ij^(p-1) x_i   dL/dw_j = p G_j - (p-1) <v_j, A_j> u_j

so a batch costs two products, X U^T and (g Z^(p-1))^T X, and a few passes over Z; no graph is kept. Other modules are
left to autograd. Both take losses far below floating point: l_i is never formed but relative to ``frame``.

Rows that are not in memory are shuffled within random groups of blocks, SHUFFLED_ROWS rows at a time, so that labels
in order of class do no harm; every batch but the last of a pass is full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from polyrelu.checks import checked_output
from polyrelu.data import BLOCK, Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet
from polyrelu.train.losses import log_add, loss_slopes

SHUFFLED_ROWS = 32 * BLOCK  # rows held in memory and shuffled together, of data that are read block by block

Parts = Iterable[tuple[Tensor, ...]]  # rows, labels and, where samples are weighted, the logs of their weights


def gradient_of(net: nn.Module, loss: str) -> ByHand | ByAutograd:
    """By hand where the formula above holds, else by autograd."""
    return ByHand(net, loss) if isinstance(net, PolyReLUNet) and net.is_plain() else ByAutograd(net, loss)


class ByHand:
    """The formulas above, for a PolyReLUNet whose weights are its true ones."""

    def __init__(self, net: PolyReLUNet, loss: str) -> None:
        self.net, self.loss = net, loss
        self.memory = net.weight.new_empty(0)  # used again for every part

    def rows(self, X: Tensor) -> Tensor:
        """Inputs in the form in which parts hold them: centred and normalised."""
        return self.net.preprocess(X).detach()

    @torch.no_grad()
    def __call__(self, parts: Parts, n: int, frame: float) -> float:
        """Set ``grad`` of every trained parameter, from parts of n rows in all; gives the log of their mean loss."""
        net, p = self.net, self.net.p
        r = torch.linalg.vector_norm(net.weight, dim=1)
        u = net.weight / torch.where(r > 0, r, 1.0)[:, None]
        v, total = net.output, -math.inf
        G, A, b = torch.zeros_like(net.weight), torch.zeros_like(v), v.new_zeros(net.outputs)
        for x, y, *log_weight in parts:
            size = 3 * net.width * len(x)
            if size > len(self.memory):
                self.memory = u.new_empty(size)
            high, low, back = self.memory[:size].view(3, net.width, len(x))  # a neuron a row: the faster products
            relu_powers(torch.mm(u, x.T, out=high), p, low)
            f = ((v * r) @ high).T
            log_loss, log_size, direction = loss_slopes(self.loss, f if net.bias is None else f + net.bias, y)
            for log in log_weight:
                log_loss, log_size = log_loss + log, log_size + log
            total = log_add(total, float(log_loss.double().logsumexp(0)))
            g = (direction * (log_size - (frame + math.log(n))).exp()[:, None]).T.contiguous()
            A.addmm_(g, high.T)
            b += g.sum(1)
            low.mul_(g if net.outputs == 1 else torch.mm(v.T, g, out=back))
            G.addmm_(low, x)
        if net.outputs == 1:
            G *= v.T
        G.mul_(-p).addcmul_(u, ((p - 1) * (v * A).sum(0))[:, None])
        for parameter, grad in ((net.weight, G), (v, A.mul_(-r)), (net.bias, -b)):
            if parameter is not None and parameter.requires_grad:
                parameter.grad = grad
        return total - math.log(n)


def relu_powers(z: Tensor, p: float, low: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """relu(z)^p and relu(z)^(p-1), with 0^0 = 0: an inactive neuron does not move. Written to z and ``low``."""
    low = torch.empty_like(z) if low is None else low
    z.clamp_(min=0)
    if p == 1:
        return z, torch.gt(z, 0, out=low)
    if p == 2:
        low.copy_(z)
    elif p == 3:
        torch.mul(z, z, out=low)
    elif p == 4:
        torch.mul(z, z, out=low).mul_(z)
    else:
        torch.pow(z, p - 1, out=low)
    return z.mul_(low), low


class ByAutograd:
    """Any module that maps (n, D) to (n,) or (n, C)."""

    def __init__(self, net: nn.Module, loss: str) -> None:
        self.net, self.loss = net, loss

    def rows(self, X: Tensor) -> Tensor:
        """Inputs in the form in which parts hold them: unchanged."""
        return X

    def __call__(self, parts: Parts, n: int, frame: float) -> float:
        """The same as `ByHand`."""
        self.net.zero_grad()
        total = -math.inf
        for x, y, *log_weight in parts:
            relative = relative_loss(self.loss, logit_columns(self.net, x), y, frame, *log_weight)
            relative.div(n).backward()  # type: ignore[no-untyped-call]
            total = log_add(total, float(relative.detach().log()) + frame)
        return total - math.log(n)


def logit_columns(net: nn.Module, x: Tensor) -> Tensor:
    """Outputs as (n, C), one logit as (n, 1)."""
    f: Tensor = net(x)
    return f[:, None] if f.ndim == 1 else f


def outputs_of(net: nn.Module, data: Dataset) -> int:
    """Number of logits of a module that can be trained on these data, or an InputError."""
    trained = [p for p in net.parameters() if p.requires_grad]
    require(bool(trained), "net", type(net).__name__, "a module with parameters to train")
    floats = all(p.is_floating_point() for p in trained)
    require(floats, "net", "weights that are no floating numbers", "a module in float32 or float64")
    f = checked_output(net, data.rows(0, 1).to(trained[0].dtype), "net")
    require(f.requires_grad, "net(X)", "no gradient", "logits that depend on the parameters")
    require(bool(f.isfinite().all()), "net(X)", "NaN or infinity", "finite logits")
    return 1 if f.ndim == 1 else f.shape[1]


def relative_loss(name: str, f: Tensor, y: Tensor, frame: float, log_weight: Tensor | None = None) -> Tensor:
    """``sum_i c_i l_i / exp(frame)``, differentiable also where a squared loss is exactly zero."""
    if name == "squared":
        squares = loss_slopes(name, f, y).direction.square().sum(1)
        return (squares if log_weight is None else squares * log_weight.exp()).sum() * (0.5 * math.exp(-frame))
    log_loss = loss_slopes(name, f, y).log_loss - frame
    return (log_loss if log_weight is None else log_loss + log_weight).exp().sum()


class Batches:
    """Passes over ``data`` in batches (None: all rows at once), in ``dtype``, rows as ``prepare`` makes them.

    ``weights`` (n,) of the samples or None; see `mean_one_weights`.
    """

    def __init__(
        self,
        data: Dataset,
        dtype: torch.dtype,
        batch: int | None,
        prepare: Callable[[Tensor], Tensor],
        weights: Tensor | None = None,
    ) -> None:
        self.data, self.dtype, self.prepare = data, dtype, prepare
        self.batch = None if batch is None else min(batch, len(data))
        self.y = data.y.to(dtype) if data.binary else data.y
        self.log_weight: Tensor | None = None
        if weights is not None:
            self.log_weight = mean_one_weights(weights, len(data)).log().to(data.y.device, dtype)
        self.X = prepare(data.X.to(dtype)) if isinstance(data.X, Tensor) else None
        self.starts = range(0, len(data), BLOCK)

    def __call__(self, generator: torch.Generator) -> Iterator[tuple[Parts, int]]:
        """For every update of a pass its rows, labels and log weights in parts, and the number of rows."""
        n = len(self.data)
        if self.batch is None:
            yield (self.block(start) for start in self.starts), n
        elif self.X is not None:
            buffer = self.X.new_empty(self.batch, *self.X.shape[1:])
            for index in torch.split(torch.randperm(n, generator=generator).to(self.X.device), self.batch):
                x = torch.index_select(self.X, 0, index, out=buffer[: len(index)])
                yield [(x, *self.labels(index))], len(index)
        else:
            yield from self.shuffled_groups(generator, self.batch)

    def shuffled_groups(self, generator: torch.Generator, batch: int) -> Iterator[tuple[Parts, int]]:
        """Batches of rows that are read block by block: what fills none goes on into the next group of blocks."""
        order = torch.randperm(len(self.starts), generator=generator).tolist()
        blocks = SHUFFLED_ROWS // BLOCK
        left_over: list[tuple[Tensor, ...]] = []
        while order or left_over:
            group, order = order[:blocks], order[blocks:]
            parts = [*left_over, *(self.block(self.starts[k]) for k in group)]
            whole = [torch.cat(part) for part in zip(*parts, strict=True)]
            shuffled = torch.randperm(len(whole[0]), generator=generator).to(whole[0].device)
            full = len(shuffled) // batch * batch if order else len(shuffled)
            for index in torch.split(shuffled[:full], batch):
                yield [tuple(part[index] for part in whole)], len(index)
            rest = shuffled[full:]
            left_over = [tuple(part[rest] for part in whole)] if len(rest) else []

    def block(self, start: int) -> tuple[Tensor, ...]:
        """The rows from ``start`` on as the gradient takes them, with labels and log weights."""
        stop = min(start + BLOCK, len(self.data))
        if self.X is not None:
            return self.X[start:stop], *self.labels(slice(start, stop))
        return self.prepare(self.data.rows(start, stop).to(self.dtype)), *self.labels(slice(start, stop))

    def labels(self, rows: slice | Tensor) -> tuple[Tensor, ...]:
        """Labels of some rows and, where samples are weighted, the logs of their weights."""
        return (self.y[rows],) if self.log_weight is None else (self.y[rows], self.log_weight[rows])


def mean_one_weights(weights: Tensor, n: int) -> Tensor:
    """Weights of n samples with mean 1, in float64; finite, >= 0 and not all 0."""
    weights = torch.as_tensor(weights).detach().double()
    require(tuple(weights.shape) == (n,), "weights.shape", tuple(weights.shape), f"({n},), one for each row")
    good = bool((weights >= 0).all() & weights.isfinite().all() & weights.any())
    require(good, "weights", f"{float(weights.min()):g} to {float(weights.max()):g}", "numbers >= 0, not all of them 0")
    return weights / weights.mean()
