"""Training to the end and the measurements of what was learned, beside peers, in one run.

    python benchmarks/bias.py                     # everything but the CNN, a few minutes
    python benchmarks/bias.py --sections end      # sections: end linear measures cnn

end       K=10 (6+4), D=200, n=1000, h=100, p = 1 and 3: seconds to log10 loss -1000, whether the smoothed margin
          ever fell, KKT residual at the published thresholds; beside it the published loss-based rate (full-batch
          gradient descent) given the same seconds
linear    logistic regression: 1 - cosine to the SVM, the flow and plain gradient descent after as many gradients
measures  every function at h=2000, D=1000, n=20000: seconds; peers: scikit-learn's SVM and k-means, scipy's NNLS on the
          Jacobian (at a size it can hold)
cnn       the MNIST-challenge CNN without bias on 1000 of scikit-learn's 8x8 digits: thresholds 1e-10 ... 1e-120
"""

from __future__ import annotations

import argparse
import math
import time

from polyrelu.progress import Progress
from polyrelu.threads import prepare

prepare()  # before torch is loaded

import torch

import polyrelu
from polyrelu.bias import (
    alignment,
    alignment_speed,
    balance,
    class_regions,
    cones,
    correlation,
    cosine_to_svm,
    decompose,
    decoupling,
    estimate_subclasses,
    feature_stable_rank,
    kkt,
    lipschitz,
    margin_history,
    margins,
    simplicity,
    stationary_directions,
    svm_direction,
    universal,
    weight_stable_ranks,
)
from polyrelu.nets import LogisticRegression, SmallCNN
from polyrelu.train import Until, descend, flow

LEVELS = (-10.0, -15.0, -20.0, -120.0, -881.0)
F64 = torch.float64


def seconds(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


class Clock(Progress):
    """Ends a descent after so many seconds."""

    def __init__(self, limit):
        self.end = time.perf_counter() + limit

    def update(self, **_):
        if time.perf_counter() > self.end:
            raise KeyboardInterrupt


def end(_):
    print("\n## end: to log10 loss -1000 (target: 60 s)")
    data = polyrelu.OrthonormalMixture(200, 6, 4, alpha=0.1, dtype=F64).sample(1000, seed=0)
    for p in (1.0, 3.0):
        net = polyrelu.PolyReLUNet(200, 100, p, init="balanced", scale=1e-7, seed=0, dtype=F64)
        wall, out = seconds(lambda net=net: flow(net, data, until=Until(log10_loss=-1000), checkpoints=LEVELS))
        fall = margin_history(out).monotone
        print(
            f"p={p:g}: {wall:.1f} s, {out.evaluations:.0f} passes, {out.counts['late_steps']:.0f} late steps,", end=" "
        )
        print(f"log10 loss {out.log10_loss:.2f}, largest fall of the log smoothed margin {fall.largest_fall:.1e}")
        for level, one in {**out.checkpoints, -1000: out.net}.items():
            found, point = margins(one, data), kkt(one, data)
            print(f"    1e{level:g}: normalised margin {found.normalised:.5f}, smoothed {found.smoothed:.5f},", end=" ")
            free = "" if point.free is None else f" ({point.free.stationarity:.1e} with {point.kinks} gates free)"
            print(f"KKT stationarity {point.stationarity:.1e}{free}, slackness {point.slackness:.1e}")
        start = flow(net, data, until=1e-2).net
        theirs = descend(
            start, data, loss_based=True, rate=0.1, until=Until(log10_loss=-1000), steps=10**9, progress=Clock(wall)
        )
        point = kkt(theirs.net, data)
        print(
            f"    loss-based rate from loss 1e-2, {theirs.seconds:.1f} s: log10 loss {theirs.log10_loss:.2f},", end=" "
        )
        print(
            f"normalised margin {margins(theirs.net, data).normalised:.5f}, KKT stationarity {point.stationarity:.1e}"
        )


def linear(_):
    print("\n## linear: 1 - cosine to the SVM direction (target: 1e-4)")
    for seed in range(4):
        source = torch.Generator().manual_seed(seed)
        X, w = torch.randn(40, 2, generator=source, dtype=F64), torch.tensor([1.0, 0.5], dtype=F64)
        y = torch.sign(X @ w)
        data = polyrelu.Dataset(X + 0.1 * y[:, None] * w, y)
        net = LogisticRegression(2, bias=False, dtype=F64)
        ours = flow(net, data, loss="logistic", until=Until(log10_loss=-1000))
        plain = descend(net, data, loss="logistic", rate=1.0, steps=math.ceil(ours.evaluations), until=1e-300)
        gaps = [1 - cosine_to_svm(one.net, data) for one in (ours, plain)]
        print(
            f"seed {seed}: flow {gaps[0]:.1e}, gradient descent {gaps[1]:.1e} ({ours.evaluations:.0f} gradients each)"
        )


def measures(args):
    size = args.size
    dim, width, samples = round(1000 * size), round(2000 * size), round(20_000 * size)
    print(f"\n## measures: D={dim}, h={width}, n={samples}, p=1")
    mix = polyrelu.OrthonormalMixture(dim, 6, 4, alpha=0.1)
    data = mix.sample(samples, seed=0)
    net = polyrelu.PolyReLUNet(dim, width, 1.0, init="balanced", scale=1e-7, seed=0)
    net = flow(net, data, until=1e-2).net
    calls = {
        "alignment": lambda: alignment(net, data),
        "balance": lambda: balance(net),
        "class_regions": lambda: class_regions(net, data),
        "cones": lambda: cones(net, data),
        "alignment_speed": lambda: alignment_speed(net, data),
        "stationary_directions": lambda: stationary_directions(data, 3.0, starts=100),
        "decompose": lambda: decompose(net, mix.centres, mix.labels),
        "estimate_subclasses": lambda: estimate_subclasses(data),
        "decoupling": lambda: decoupling(net, data),
        "universal": lambda: universal(mix.centres, mix.labels, net),
        "margins": lambda: margins(net, data),
        "kkt": lambda: kkt(net, data),
        "svm_direction": lambda: svm_direction(data),
        "simplicity": lambda: simplicity(net, data),
        "feature_stable_rank": lambda: feature_stable_rank(net, data),
        "weight_stable_ranks": lambda: weight_stable_ranks(net),
        "correlation": lambda: correlation(data),
        "lipschitz": lambda: lipschitz(net),
    }
    for name, call in calls.items():
        print(f"{name:24s} {seconds(call)[0]:7.2f} s", flush=True)
    peers(data, mix)


def peers(data, mix):
    from scipy.optimize import nnls
    from sklearn.cluster import KMeans
    from sklearn.svm import LinearSVC

    X, y = data.rows().numpy(), data.y.numpy()
    mine, found = seconds(lambda: svm_direction(data))
    hard = LinearSVC(C=1e4, loss="hinge", fit_intercept=False, tol=1e-6, max_iter=20_000)
    theirs, _ = seconds(lambda: hard.fit(X, y))
    w = torch.from_numpy(hard.coef_[0])
    margin = float((data.y.double() * (data.rows().double() @ w)).min() / w.norm())
    print(f"svm_direction {mine:.1f} s, margin {found.margin:.6f}; scikit-learn LinearSVC {theirs:.1f} s, {margin:.6f}")
    mine, groups = seconds(lambda: estimate_subclasses(data, count=[6, 4]))
    theirs, _ = seconds(lambda: [KMeans(k, n_init=3, random_state=0).fit(X[y == s]) for k, s in ((6, 1), (4, -1))])
    worst = float((groups.centres.double() @ mix.centres.double().T).amax(1).min())
    print(
        f"sub-classes of known number {mine:.1f} s (least cosine to a centre {worst:.4f}); scikit-learn {theirs:.1f} s"
    )
    small = polyrelu.OrthonormalMixture(100, 6, 4, alpha=0.1, dtype=F64).sample(1000, seed=0)
    net = flow(polyrelu.PolyReLUNet(100, 100, 3.0, init="balanced", scale=1e-4, dtype=F64), small, until=1e-6).net
    mine, ours = seconds(lambda: kkt(net, small))

    def jacobian():
        names = [name for name, _ in net.named_parameters()]
        rows = []
        for x, one in zip(small.rows(), small.y, strict=True):
            grads = torch.autograd.grad(one * net(x[None])[0], [dict(net.named_parameters())[name] for name in names])
            rows.append(torch.cat([grad.flatten() for grad in grads]))
        theta = torch.cat([p.detach().flatten() for p in net.parameters()])
        q = small.y * net(small.rows()).detach()
        near = q <= 1.1 * q.min()
        return nnls(torch.stack(rows)[near].T.numpy(), theta.numpy())[1] / float(theta.norm())

    theirs, residual = seconds(jacobian)
    print(f"kkt {mine:.2f} s ({ours.stationarity:.6f}); autograd and scipy NNLS {theirs:.2f} s ({residual:.6f})")


def cnn(_):
    print("\n## cnn: 1000 8x8 digits, hidden 32, cross-entropy")
    data = polyrelu.data.read("digits").subset(slice(0, 1000))
    net = SmallCNN(8, 10, hidden=32, bias="none", seed=0)
    wall, out = seconds(lambda: flow(net, data, loss="cross_entropy", until=Until(log10_loss=-120), checkpoints=LEVELS))
    print(f"{wall:.0f} s, {out.status.name}, {out.counts}")
    for level, one in out.checkpoints.items():
        found = margins(one, data, "cross_entropy")
        print(f"    1e{level:g}: product-norm margin {found.product:.2e}, normalised {found.normalised:.2e}")


SECTIONS = {"end": end, "linear": linear, "measures": measures, "cnn": cnn}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=["end", "linear", "measures"])
    parser.add_argument("--size", type=float, default=1.0, help="share of the published size, for measures")
    arguments = parser.parse_args()
    for section in arguments.sections:
        SECTIONS[section](arguments)
