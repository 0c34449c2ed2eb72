"""The gradient flow beside its peers, in one run: `python benchmarks/flow.py [SECTION ...] [--size 0.25]`.

Sections (all by default):
  paper    D=1000, 6+4 clusters, n=20000, h=2000, alpha=.1, init 1e-7, exp loss to 1e-2, against the published recipe
           (SGD .2, batch 100, 401 epochs; time per step is measured, the whole extrapolated) and against the same
           recipe stopped as soon as it reaches the same loss (really run)
  parts    what each speed-up brings: two-level steps, merging, dropping, evaluation in cache
  scipy    solve_ivp (RK45) on the raw weights, same tolerance, a smaller problem
  tiny     init 1e-300 against init 1e-7
  growth   time when n, D, h or K doubles
  stream   n = 10^6 rows generated on the fly: peak memory
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial

from polyrelu.threads import prepare

prepare()  # before torch is loaded

import numpy as np
import torch
from scipy.integrate import solve_ivp

import polyrelu
from polyrelu.train.gradient_flow import Field, PolarState

RATE, BATCH, EPOCHS, TARGET = 0.2, 100, 401, 1e-2


def seconds(call, repeat=1):
    begin = time.perf_counter()
    for _ in range(repeat):
        result = call()
    return (time.perf_counter() - begin) / repeat, result


def setting(size, clusters=(6, 4), dim=1000, samples=20_000, width=2000, dtype=torch.float32, **net):
    dim, samples, width = (round(size * number) for number in (dim, samples, width))
    data = polyrelu.OrthonormalMixture(dim, *clusters, alpha=0.1, dtype=dtype).sample(samples, seed=0)
    options = {"p": 3.0, "init": "balanced", "scale": 1e-7, "seed": 0} | net
    return data, polyrelu.PolyReLUNet(dim, width, dtype=dtype, **options)


def learned(out):
    """Neurons carrying 99 % of the contribution, and their mean cosine to nearest centre and class average."""
    c = out.net.contributions()
    order = c.argsort(descending=True)
    top = order[: int((c[order].cumsum(0) / c.sum() < 0.99).sum()) + 1]
    return len(top), out.history.cos_centre[-1][top].mean(), out.history.cos_average[-1][top].mean()


def published_sgd(data, p, width, limit):
    """The published recipe as plain PyTorch: Gaussian start 1e-7, mean exp loss, SGD .2, batch 100.

    Seconds per step and, if the loss of 2000 training points falls below TARGET within ``limit`` steps, how many
    steps and seconds that took.
    """
    torch.manual_seed(0)
    X, y = data.rows(), data.y
    W = (1e-7 * torch.randn(data.dim, width)).requires_grad_()
    v = (1e-7 * torch.randn(width)).requires_grad_()
    optimiser = torch.optim.SGD([W, v], lr=RATE)

    def score(x):
        hidden = torch.relu(x @ W)
        return (hidden if p == 1 else hidden**p / W.norm(dim=0) ** (p - 1)) @ v

    spent, steps = 0.0, 0
    order = torch.randperm(len(y))
    while steps < limit:
        begin = time.perf_counter()
        for _ in range(50):
            at = (steps * BATCH) % len(y)
            if at == 0:
                order = torch.randperm(len(y))
            index = order[at : at + BATCH]
            optimiser.zero_grad()
            torch.exp(-y[index] * score(X[index])).mean().backward()
            optimiser.step()
            steps += 1
        spent += time.perf_counter() - begin
        with torch.no_grad():
            if float(torch.exp(-y[:2000] * score(X[:2000])).mean()) < TARGET:
                return spent / steps, steps, spent
    return spent / steps, None, None


def paper(size):
    for p in (3.0, 1.0):
        data, net = setting(size, p=p)
        step, steps, stopped = published_sgd(data, p, net.width, limit=6000)
        recipe = step * EPOCHS * len(data) / BATCH
        print(
            f"p={p:g}  published recipe: {1e3 * step:.1f} ms a step, {recipe:.0f} s for {EPOCHS} epochs (extrapolated)"
        )
        if steps:
            print(f"      the same SGD stopped at loss {TARGET:g}: {steps} steps, {stopped:.1f} s")
        for init in ("balanced", "gaussian"):
            data, net = setting(size, p=p, init=init)
            wall, out = seconds(partial(polyrelu.flow, net, data, until=TARGET))
            count, centre, average = learned(out)
            print(f"      flow, {init} start: {wall:.1f} s, {out.evaluations:.1f} passes", end="")
            print(f": {recipe / wall:.0f}x the recipe", end="")
            print(f", {stopped / wall:.1f}x the stopped SGD" if steps else "")
            print(
                f"          {count} neurons carry 99 %, cosine to centre {centre:.4f}, to average {average:.4f};",
                end="",
            )
            print(f" flow time {out.time:.0f} = {out.time / RATE:.0f} GD steps; log10 loss {out.log10_loss:.3f}")
    print(f"      peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def parts(size):
    for p in (3.0, 1.0):
        data, net = setting(size, p=p, samples=5000, width=500)
        print(f"p={p:g}  D={data.dim}, n={len(data)}, h={net.width}")
        for name, options in {
            "all on": {},
            "no merging": {"merge": False},
            "no dropping": {"drop": False},
            "no two-level steps": {"surrogate": 0},
            "none": {"surrogate": 0, "merge": False, "drop": False},
        }.items():
            wall, out = seconds(partial(polyrelu.flow, net, data, until=TARGET, **options))
            print(f"      {name:20s} {wall:7.1f} s {out.evaluations:7.1f} passes {out.counts['moving']:5.0f} rows left")
        state = PolarState.from_polar(net.polar(), torch.zeros(1))
        X, y = data.rows(), data.y
        field = Field(lambda a, b, X=X: X[a:b], y, loss="exp", p=p)
        plain = polyrelu.PolyReLUNet(data.dim, net.width, p, init="balanced", scale=1e-3)

        def autograd(plain=plain, X=X, y=y):
            plain.zero_grad()
            torch.exp(-y * plain(X)).mean().backward()

        def products(X=X, u=state.u):
            z = X @ u.T
            return z.T @ X

        ours, theirs, floor = (seconds(call, 3)[0] for call in (partial(field, state), autograd, products))
        print(
            f"      one pass: in cache {ours:.3f} s, autograd on all rows {theirs:.3f} s ({theirs / ours:.2f}x),"
            f" the two matrix products alone {floor:.3f} s"
        )


def raw_weights(net, data):
    """The flow on raw weights as scipy takes it: slope, start, and f on the data, in float64 numpy."""
    X, y, p = data.rows().numpy(), data.y.numpy(), net.p
    W, v = net.weight.detach().numpy(), net.output.detach().numpy()[0]
    shape = W.shape

    def forward(theta):
        W, v = theta[: shape[0] * shape[1]].reshape(shape), theta[shape[0] * shape[1] :]
        r = np.linalg.norm(W, axis=1)
        u = W / r[:, None]
        z = np.maximum(X @ u.T, 0)
        low = (z > 0) * 1.0 if p == 1 else z ** (p - 1)
        return u, v, r, low, low * z, (low * z) @ (v * r)

    def slope(_, theta):
        u, v, r, low, high, f = forward(theta)
        g = y * np.exp(-y * f) / len(y)
        a = high.T @ g
        return np.concatenate([(v[:, None] * (p * (low * g[:, None]).T @ X + (1 - p) * a[:, None] * u)).ravel(), r * a])

    return slope, np.concatenate([W.ravel(), v]), lambda theta: forward(theta)[-1]


def scipy(size):
    rtol = 1e-3
    for dim, samples, width in ((200, 10_000, 200), (500, 10_000, 500)):
        for p in (3.0, 1.0):
            data, net = setting(size, p=p, dim=dim, samples=samples, width=width, dtype=torch.float64)
            slope, start, f = raw_weights(net, data)
            wall, out = seconds(partial(polyrelu.flow, net, data, until=TARGET, rtol=rtol))
            peer, solution = seconds(
                partial(solve_ivp, slope, (0, out.time), start, method="RK45", rtol=rtol, atol=rtol * 1e-7)
            )
            theirs, ours = f(solution.y[:, -1]), out.net(data.rows()).detach().numpy()
            print(f"p={p:g}  D={data.dim}, n={len(data)}, h={net.width}, rtol {rtol:g}, to t={out.time:.0f}:", end="")
            print(
                f" flow {wall:.2f} s, {out.evaluations:.1f} passes; RK45 {peer:.2f} s, {solution.nfev} passes", end=""
            )
            print(f": {peer / wall:.1f}x; f differs by {abs(ours - theirs).max() / abs(theirs).max():.1e}")
    data, net = setting(size, p=3.0, dim=100, samples=2500, width=100, dtype=torch.float64)
    slope, start, f = raw_weights(net, data)
    truth = f(solve_ivp(slope, (0, 120.0), start, method="DOP853", rtol=1e-8, atol=1e-14).y[:, -1])
    theirs = f(solve_ivp(slope, (0, 120.0), start, method="RK45", rtol=rtol, atol=rtol * 1e-7).y[:, -1])
    ours = polyrelu.flow(net, data, until=polyrelu.Until(time=120.0), rtol=rtol).net(data.rows()).detach().numpy()
    errors = [abs(found - truth).max() / abs(truth).max() for found in (ours, theirs)]
    print(f"error of f at t=120 at that rtol (p=3, D=100, n=2500, h=100): flow {errors[0]:.1e}, RK45 {errors[1]:.1e}")


def tiny(size):
    for p in (3.0, 1.0):
        walls = []
        for init in (1e-7, 1e-300):
            data, net = setting(size, p=p, scale=init)
            wall, out = seconds(partial(polyrelu.flow, net, data, until=TARGET))
            walls.append(wall)
            print(
                f"p={p:g}  init {init:g}: {wall:.1f} s, {out.evaluations:.1f} passes, flow time {out.time:.0f},"
                f" log10 loss {out.log10_loss:.3f}, all weights finite: {bool(out.net.weight.isfinite().all())}"
            )
        print(f"      ratio {walls[1] / walls[0]:.2f}")


def growth(size):
    base = {"dim": 500, "samples": 10_000, "width": 500, "clusters": (6, 4)}
    double = {"n": {"samples": 20_000}, "D": {"dim": 1000}, "h": {"width": 1000}, "K": {"clusters": (12, 8)}}
    print("D=500, n=10000, h=500, 6+4 clusters, then one of them doubled: seconds (ratio), passes")
    for p in (3.0, 1.0):
        cells, first = [], None
        for name, change in {"base": {}, **double}.items():
            data, net = setting(size, p=p, **(base | change))
            tries = [seconds(partial(polyrelu.flow, net, data, until=TARGET)) for _ in range(2)]
            wall, out = min(tries, key=lambda timed: timed[0])
            first = first or wall
            cells.append(f"{name} {wall:.2f} ({wall / first:.2f}x) {out.evaluations:.1f}")
        print(f"p={p:g}  " + " | ".join(cells))


def stream(size):
    rows, dim = round(1_000_000 * size), 300
    data = polyrelu.OrthonormalMixture(dim, 6, 4, alpha=0.1).sample(rows, seed=0, lazy=True)
    net = polyrelu.PolyReLUNet(dim, 100, 3.0, init="balanced", scale=1e-7, seed=0)
    wall, out = seconds(partial(polyrelu.flow, net, data, until=TARGET))
    held = rows * dim * 4 / 2**30
    print(
        f"n={rows}, D={dim}, rows drawn at every pass: {wall:.1f} s, {out.evaluations:.1f} passes. {out.status.value}"
        f" Peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"
        f" (the rows alone would be {held:.2f} GiB)"
    )


SECTIONS = {"stream": stream, "paper": paper, "parts": parts, "scipy": scipy, "tiny": tiny, "growth": growth}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), help=", ".join(SECTIONS))
    parser.add_argument(
        "--size", type=float, default=1.0, help="multiply D, n and h; below 1 it is not the paper's scale"
    )
    options = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, size {options.size:g}")
    for name in options.sections:
        print(f"\n## {name}")
        SECTIONS[name](options.size)


if __name__ == "__main__":
    main()
