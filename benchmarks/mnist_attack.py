"""Our strongest attack beside AutoAttack on MNIST nets: `mnist_attack.py [--p 3] [--norm inf] [--points 1000]`.

Ten digits, h=500, published recipe, first validation images, box [0, 1], the radii of Table 1. Printed for each net,
norm and radius: robust accuracy under the published attack (APGD-CE of pyautoattack), under APGD-CE + APGD-T + FAB-T of
pyautoattack in its standard setting, and under `strongest`; CPU seconds of each (one thread unless --threads), their
ratio, and on how many images only one of the two found something. Nets come from --nets FOLDER (p1.safetensors ...) or
are trained first. pyautoattack takes minutes for a hundred images: --points 100 is a quick look.
"""

from __future__ import annotations

import argparse
import math
import time

from polyrelu.threads import prepare

prepare()  # before torch is loaded

import _mnist
import torch

import polyrelu
from polyrelu.robust.attacks import strongest

TABLE = ((math.inf, 0.05), (math.inf, 0.1), (2.0, 1.0), (2.0, 2.0), (1.0, 5.0), (1.0, 10.0))
NAMES = {1.0: "L1", 2.0: "L2", math.inf: "Linf"}
ALL = ("apgd-ce", "apgd-t", "fab-t")


class Images(torch.nn.Module):
    """A net on rows as one on images, which is what pyautoattack was made for."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x.flatten(1))


def theirs(net, X, y, norm, radius, attacks):
    """Which images pyautoattack leaves standing."""
    from pyautoattack import AutoAttack

    attack = AutoAttack(Images(net), norm=NAMES[norm], eps=radius, seed=0, version="standard")
    attack.verbose, attack.attacks_to_run = False, list(attacks)
    found, _ = attack.run_standard_evaluation(X.view(-1, 1, 28, 28), y, batch_size=500)
    with torch.no_grad():
        return net(found.flatten(1)).argmax(dim=1) == y


def ours(net, X, y, norm, radius, pool):
    return ~strongest(net, X, y, radius, norm=norm, bounds=(0.0, 1.0), pool=pool).success


def seconds(call, *arguments):
    begin = time.process_time()
    result = call(*arguments)
    return time.process_time() - begin, result


def compare(p, points, folder, pool, norms):
    net, (X, y) = _mnist.net(p, folder), _mnist.images(points)
    for norm, radius in ((norm, radius) for norm, radius in TABLE if norm in norms):
        mine, standing = seconds(ours, net, X, y, norm, radius, pool)
        short, published = seconds(theirs, net, X, y, norm, radius, ALL[:1])
        long, full = seconds(theirs, net, X, y, norm, radius, ALL)
        shares = (float(held.double().mean()) for held in (published, full, standing))
        print(
            f"p={p:g} {NAMES[norm]:4s} {radius:5.2f}  APGD-CE {next(shares):.3f} {short:7.1f} s  "
            f"APGD-CE+T+FAB-T {next(shares):.3f} {long:7.1f} s  strongest {next(shares):.3f} {mine:6.1f} s  "
            f"{long / mine:5.1f}x  only theirs {int((standing & ~full).sum())}, ours {int((~standing & full).sum())}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p", type=float, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--nets", help="folder of p1.safetensors ...; nets not there are trained and kept there")
    parser.add_argument("--norm", type=float, nargs="+", default=list(NAMES), help="of 1, 2 and inf")
    parser.add_argument("--threads", type=int, default=1, help="the same for both")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    pool = polyrelu.data.read("mnist")
    for p in options.p:
        compare(p, options.points, options.nets, pool, options.norm)


if __name__ == "__main__":
    main()
