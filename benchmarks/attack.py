"""The minimal attack beside its peers, in one run: `python benchmarks/attack.py [--p 3] [--points 100] [--peers ...]`.

l2 radii of test points of the trained nets in `_nets.py`. Printed for each attack: seconds, milliseconds a point,
median radius, its ratio to our certified lower bound and to our attack's radius, and the share of points where ours
is not larger (within 1e-5, the rounding of float32). Then the fastest peer within 1 % of ours in the median, and the
fastest within 1 % both in the median and at the 99th percentile, with the ratio of times.

Peers: foolbox DDN and FMN (the l2 projection FMN lacks there put back) at several numbers of steps, pyautoattack FAB,
one logit as two, and the published PGD (zero start, 2000 steps of .1) at one radius, its
time multiplied by the 15 radii of the published curve. A peer that would take more than --limit seconds, judged by
PROBE points, gets as many points as fit; its time is then extrapolated in proportion and marked with *.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

from polyrelu.threads import prepare

prepare()  # before torch is loaded

import _nets
import torch

from polyrelu.robust import bracket
from polyrelu.robust.attacks import ConvexConcave, PublishedPGD
from polyrelu.robust.crosscheck import LIBRARIES, PEERS, library

RADIUS, RADII = 0.75, 15  # beyond .7071 no classifier keeps both classes; 15 radii in the published curve
LIMIT, PROBE, TIE, NEAR = 600.0, 20, 1e-5, 0.01


def seconds(call):
    """Median time of five calls, or of as many as begin within a second: start-up weighs on short ones."""
    times = []
    while len(times) < 5 and sum(times) < 1:
        begin = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2], result


def ours(net, X, y):
    return ConvexConcave()(net, X, y)


def certified(net, X, y):
    return bracket(net, X, y, norm=2, tol=1e-3).lower


def peer(name, **options):
    return partial(PEERS[name].function, norm=2, seed=0, **options)


CHOICES = {
    "ddn-100": peer("ddn", steps=100),
    "ddn-200": peer("ddn", steps=200),
    "ddn-1000": peer("ddn", steps=1000),
    "fmn-100": peer("fmn", steps=100),
    "fmn-200": peer("fmn", steps=200),
    "fmn-1000": peer("fmn", steps=1000),
    "fab": peer("fab"),
    "published": partial(PublishedPGD(), radius=RADIUS),
}


def timed(attack, net, X, y, limit=LIMIT):
    """Seconds for all points, whether extrapolated, and the radii of the points attacked."""
    if len(X) > 2 * PROBE:
        probe, _ = seconds(lambda: attack(net, X[:PROBE], y[:PROBE]))
        count = len(X) if probe * len(X) / PROBE <= limit else max(PROBE, int(PROBE * limit / probe))
    else:
        count = len(X)
    count = min(count, len(X))
    spent, result = seconds(lambda: attack(net, X[:count], y[:count]))
    return spent * len(X) / count, count < len(X), result.radius.cpu()


def line(name, wall, part, points, radius, lower, own):
    right = radius > 0
    cells = [f"{name:12s} {wall:9.2f} s{'*' if part else ' '} {1e3 * wall / points:9.2f} ms/point"]
    cells.append(f"median {float(Ranked(radius[right].sort().values).median()):.5f}")
    cells.append(f"broken {100 * float((radius[right] < torch.inf).double().mean()):5.1f} %")
    for label, other in (("certified", lower), ("ours", own)):
        ratio = ratios(radius, other)
        cells.append(f"/{label} {float(ratio.median()):8.5f} (99 %: {float(ratio.quantile(0.99)):8.5f})")
    smallest = own[: len(radius)] <= radius * (1 + TIE)
    cells.append(f"ours smallest {100 * float(smallest.double().mean()):5.1f} %")
    print("      " + "  ".join(cells), flush=True)


def ratios(radius, other):
    """radius / other on the points that are right; the larger of two equal ranks, so that inf stays inf."""
    other = other[: len(radius)]
    right = other > 0
    ratio = (radius[right] / other[right]).sort().values
    return Ranked(ratio)


class Ranked:
    def __init__(self, values):
        self.values = values

    def quantile(self, share):
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def median(self):
        return self.quantile(0.5)


def compare(p, points, names, limit):
    training, net = seconds(partial(_nets.trained, float(p)))
    X, y = _nets.test_points(points)
    print(f"\n## p={p:g}, {len(X)} points (net trained in {training:.1f} s)")
    spent, lower = seconds(lambda: certified(net, X, y))
    print(f"      certified lower bounds in {spent:.1f} s, median {float(lower.median()):.5f}")
    mine, part, own = timed(ours, net, X, y)
    line("ours", mine, part, len(X), own, lower, own)
    within = {"median": {}, "median and 99th percentile": {}}
    for name in names:
        wall, part, radius = timed(CHOICES[name], net, X, y, limit)
        if name == "published":
            wall *= RADII
            share = float((radius[radius > 0] == torch.inf).double().mean())
            print(f"      published: one radius ({RADIUS}) run, times {RADII}; it calls {100 * share:.1f} % safe there")
            print(
                f"      {name:12s} {wall:9.2f} s{'*' if part else ' '} {1e3 * wall / len(X):9.2f} ms/point", flush=True
            )
            continue
        line(name, wall, part, len(X), radius, lower, own)
        ratio = ratios(radius, own)
        near = float(ratio.median()) <= 1 + NEAR
        for label, good in zip(within, (near, near and float(ratio.quantile(0.99)) <= 1 + NEAR), strict=True):
            if good:
                within[label][name] = wall
    for label, walls in within.items():
        name = min(walls, key=walls.get, default=None)
        found = f"{name}, {walls[name]:.2f} s: {walls[name] / mine:.1f}x our time" if name else "none"
        print(f"      fastest peer within {NEAR:.0%} of ours ({label}): {found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p", type=float, nargs="+", default=[1, 3, 4])
    parser.add_argument("--points", type=int, default=1000, help="at most 1000")
    parser.add_argument("--peers", nargs="*", default=list(CHOICES), choices=list(CHOICES))
    parser.add_argument("--threads", type=int, default=1, help="the same for ours and for every peer")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds a peer may take before it gets fewer points"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; * extrapolated from fewer points")
    for name in LIBRARIES:
        library(name)  # importing is not part of anyone's time
    for p in options.p:
        compare(p, options.points, options.peers, options.limit)


if __name__ == "__main__":
    main()
