"""dist(f, F) of one trained net, ours and the published estimator in one run: seconds and values.

    python benchmarks/distance.py              # D=1000, h=2000, 6+4 clusters, p=1 and p=3; several minutes
    python benchmarks/distance.py --size 0.1   # smaller, to see that it runs

The published estimator is timed on 1 of its 10 batches (1000 points, 2000 steps) and its time multiplied by 10 (and by
2000/steps with --steps); its value is from that batch. Both use the c of the published one, so that values can be
compared; ours also the best c.
"""

import argparse
import time

from polyrelu.threads import prepare

prepare()  # before torch is loaded

import torch

import polyrelu
from polyrelu.nets import AverageClassifier, CentreClassifier
from polyrelu.robust import dist
from polyrelu.robust.distance import published_dist


def seconds(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def section(p, size, steps):
    dim, width, samples = round(1000 * size), round(2000 * size), round(20_000 * size)
    mix = polyrelu.OrthonormalMixture(dim, 6, 4, alpha=0.1)
    start = polyrelu.PolyReLUNet(dim, width, p, init="balanced", scale=1e-7)
    wall, out = seconds(lambda: polyrelu.flow(start, mix.sample(samples, seed=0), loss="exp", until=1e-2))
    print(f"\n## p={p:g}, D={dim}, h={width}, n={samples}: trained in {wall:.1f} s", flush=True)
    f = out.net
    F = AverageClassifier(mix.centres, mix.labels) if p == 1 else CentreClassifier(mix.centres, mix.labels, p)
    fast, same = seconds(lambda: dist(f, F, c="published", mixture=mix))
    longer, best = seconds(lambda: dist(f, F))
    slow, theirs = seconds(lambda: published_dist(f, F, mix, batches=1, steps=steps))
    full = slow * 10 * 2000 / steps
    print(f"published {full:8.1f} s        value {theirs.value:.6g} at c={theirs.c:.5f}", end="")
    print(f" (measured: 1 batch of 10, {steps} steps of 2000, {slow:.1f} s)")
    print(f"ours      {fast:8.2f} s {full / fast:5.0f}x value {same.value:.6g} at the same c")
    print(f"ours      {longer:8.2f} s {full / longer:5.0f}x value {best.value:.6g} at the best c={best.c:.5f}", end="")
    print(f" ({best.status.name}, {best.evaluations} evaluations against {10 * 1000 * 2001})")
    print(f"ours, c=1: {dist(f, F, c=1.0).value:.6g}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p", type=float, nargs="*", default=[1.0, 3.0])
    parser.add_argument("--size", type=float, default=1.0, help="multiply D, h and n; below 1 it is not the paper's")
    parser.add_argument("--steps", type=int, default=2000, help="steps of the published estimator (published: 2000)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="for both estimators")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} threads, size {options.size:g}, {options.steps} steps")
    for p in options.p:
        section(p, options.size, options.steps)


if __name__ == "__main__":
    main()
