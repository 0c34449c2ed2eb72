"""Brackets of trained nets: how tight, how fast, and beside two other certificates, in one run.

    python benchmarks/certify.py                       # everything, some minutes
    python benchmarks/certify.py --sections paper      # p = 1, 3, 4: gaps, curves, milliseconds a point
    sections: paper width hard peers

Nets: D=1000, 6+4 clusters, alpha=.1, flow-trained on 20 000 points to loss 1e-2; test points of another seed. Times are
of the whole bracket (attack, certificate, check), the reduction of the net included. "curves" is the largest difference
of attacked and certified accuracy over all radii. Peers: the linear certificate of this package, which is what CROWN
does for one hidden layer (tangents and chords; the package auto-LiRPA itself does not install beside this torch), and
the Lipschitz bound. Tuned on seeds 0 and 1; --seed gives nets and points nobody looked at.
"""

from __future__ import annotations

import argparse
import time

from polyrelu.threads import prepare

prepare()  # before torch is loaded

import _nets
import torch

import polyrelu
from polyrelu.robust import linear_radius, root_lipschitz_radius


def seconds(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def difference(lower, upper):
    """The largest share of points robust by ``upper`` but not by ``lower`` at one radius."""
    radii = torch.cat([lower, upper]).sort().values
    attacked = (upper[None] > radii[:, None]).double().mean(dim=1)
    certified = (lower[None] > radii[:, None]).double().mean(dim=1)
    return float((attacked - certified).max())


def report(name, net, data, points, tol, budget=None):
    X, y = data.rows(0, points), data.y[:points]
    wall, found = seconds(lambda: polyrelu.bracket(net, X, y, tol=tol, budget=budget))
    right = found.upper > 0
    gap = (found.upper / found.lower - 1)[right]
    curves = 100 * difference(found.lower, found.upper)
    print(
        f"{name:34s} {1e3 * wall / points:8.2f} ms/point  median {found.upper.median():.4f}"
        f"  gap median {gap.median():.1e} max {gap.max():.1e}  curves {curves:5.2f} points"
        f"  nodes {found.nodes.double().mean():.1f}",
        flush=True,
    )
    return wall


def paper(args):
    print(f"\n## paper: h=200, {args.points} points, tol=1e-4 (target: p=1 5 ms, p=3 50 ms; curves .5 and 2 points)")
    for p in (1, 3, 4):
        net = _nets.trained(p, seed=args.seed)
        report(f"p={p}", net, _nets.test_data(1000, args.seed + 1), args.points, 1e-4)


def width(args):
    print("\n## width: 2000 beside 200, tol=1e-3 (target: within 4x)")
    for p in (1, 3):
        walls = []
        for h in (200, 2000):
            net = _nets.trained(p, width=h, seed=args.seed)
            walls.append(report(f"p={p} h={h}", net, _nets.test_data(1000, args.seed + 1), args.points, 1e-3))
        print(f"p={p}: width 2000 takes {walls[1] / walls[0]:.1f}x the time of 200")


def hard(args):
    print("\n## hard: p=2, 8+12 clusters, large initial weights (prototype gaps: 5.9 %, at most 1.4 %, 48 %)")
    data, few = _nets.test_data(1000, args.seed + 1), min(args.points, 100)
    report("p=2", _nets.trained(2, seed=args.seed), data, few, 1e-3, polyrelu.Budget(nodes=100))
    twenty = _nets.mixture(8, 12)
    net = _nets.trained(3, seed=args.seed, mix=twenty)
    report("p=3, K=20", net, twenty.sample(1000, seed=args.seed + 1), few, 1e-3)
    for p in (1, 3):
        net = _nets.trained(p, width=100, seed=args.seed, init="balanced", scale=1000**-0.5, samples=2000)
        report(f"p={p}, |w| = 1 at the start, h=100", net, data, min(few, 20), 1e-3, polyrelu.Budget(nodes=30))


def peers(args):
    few = min(args.points, 200)
    print(f"\n## peers: {few} points; median and least ratio to the found radius, milliseconds a point")
    data = _nets.test_data(1000, args.seed + 1)
    X, y = data.rows(0, few), data.y[:few]
    for p in (1, 3):
        net = _nets.trained(p, seed=args.seed)
        found = polyrelu.bracket(net, X, y, tol=1e-4)
        upper = found.upper.clamp(min=1e-300)
        calls = {
            "branch and bound": lambda net=net: polyrelu.bracket(net, X, y, tol=1e-4).lower,
            "linear (CROWN-like)": lambda net=net: linear_radius(net, X, y),
            "Lipschitz": lambda net=net: root_lipschitz_radius(net, X, y),
        }
        for name, call in calls.items():
            wall, lower = seconds(call)
            ratio = (lower / upper)[found.upper > 0]
            print(f"p={p} {name:20s} {ratio.median():.4f} {ratio.min():.4f} {1e3 * wall / few:8.3f} ms", flush=True)


SECTIONS = {"paper": paper, "width": width, "hard": hard, "peers": peers}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for section in chosen.sections:
        SECTIONS[section](chosen)
