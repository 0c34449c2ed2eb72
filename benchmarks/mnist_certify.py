"""Proven l2 robust accuracy of the MNIST nets: `python benchmarks/mnist_certify.py [--p 3] [--points 100]`.

Ten digits, h=500, published recipe, first validation images, no box. For each net and radius: the accuracy that every
certificate proves and the one the strongest attack leaves, so that the truth lies between; seconds a point; the largest
radius at which more than half of the images are proven. Peers in the same run: the linear bounds of this package, which
are what CROWN does for one hidden layer, and the product-of-norms Lipschitz bound margin/(sqrt(2) (2p - 1) |V| |U|).
"""

from __future__ import annotations

import argparse
import time

from polyrelu.threads import prepare

prepare()  # before torch is loaded

import _mnist
import torch

from polyrelu.robust import bracket, linear_radius, margin_of, quadratic_radius
from polyrelu.robust.attacks import strongest


def norms_radius(net, X, y):
    """f = V |z| phi(U z/|z|) has the Jacobian V (diag(phi') U - (p - 1) phi z^T/|z|), of norm <= |V| (2p - 1) |U|."""
    net = net.double()
    length = torch.linalg.vector_norm(net.weight.detach(), dim=1)
    U, V = net.weight.detach() / length[:, None], net.output.detach() * length
    steep = (2 * net.p - 1) * torch.linalg.matrix_norm(U, 2) * torch.linalg.matrix_norm(V, 2)
    with torch.no_grad():
        return (margin_of(net(X.double()), y) / (2**0.5 * steep)).clamp(min=0)


def bracket_radius(net, X, y):
    """What `bracket` proves with its attack, for neurons that did not collapse."""
    return bracket(net, X, y).lower


def seconds(call, *arguments):
    begin = time.process_time()
    result = call(*arguments)
    return time.process_time() - begin, result


def show(p, points, radii, folder):
    net, (X, y) = _mnist.net(p, folder), _mnist.images(points)
    print(f"\n## p={p:g}, {points} images", flush=True)
    certificates = {
        "norms": norms_radius,
        "linear": linear_radius,
        "quadratic": quadratic_radius,
        "bracket": bracket_radius,
    }
    radius_of = {}
    for name, call in certificates.items():
        wall, proven = seconds(call, _mnist.net(p, folder), X, y)
        radius_of[name] = proven
        half = float(proven.sort(descending=True).values[points // 2])
        shares = "  ".join(f"{float((proven >= radius).double().mean()):.3f}" for radius in radii)
        print(f"{name:10s} proven   {shares}   above half up to {half:.3f}   {wall / points:.3f} s/point", flush=True)
    wall, left = seconds(lambda: [~strongest(net, X, y, radius).success for radius in radii])
    shares = "  ".join(f"{float(held.double().mean()):.3f}" for held in left)
    print(f"{'strongest':10s} attacked {shares}   {wall / points / len(radii):.3f} s/point and radius", flush=True)
    best = torch.stack([radius.double() for radius in radius_of.values()]).amax(dim=0)
    broken = sum(int(((best >= radius) & ~held).sum()) for radius, held in zip(radii, left, strict=True))
    print(f"proven and broken: {broken} (must be 0)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p", type=float, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--radii", type=float, nargs="+", default=[0.25, 0.5, 0.75, 1.0, 1.25, 1.5])
    parser.add_argument("--nets", help="folder of p1.safetensors ...; nets not there are trained and kept there")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("radii " + "  ".join(f"{radius:g}" for radius in options.radii))
    for p in options.p:
        show(p, options.points, options.radii, options.nets)


if __name__ == "__main__":
    main()
