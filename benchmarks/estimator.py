"""PolyReLUClassifier beside a plain loop, on a million rows, and its proofs: `python benchmarks/estimator.py`.

fit       50 000 MNIST images, ten digits, width 500, p = 3, Adam 1e-3, batches of 1000, --epochs passes: ours beside
          the same net as a plain PyTorch loop (autograd, torch.optim.Adam, batches by index). CPU seconds of a pass.
rows      a memory-mapped file of --rows rows of 128 float32 numbers: one pass of fit, predict, predict_proba; seconds
          and the largest memory the process held beyond what it held before (anonymous pages: the file's own pages
          belong to the system and are given back when needed)
certify   --points validation images by the head with default settings, trained on 10 000 of them; seconds, and what
          is proven and found at .1 / .2 / .3 of the median distance from the mean
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

from polyrelu.progress import Progress
from polyrelu.threads import prepare

prepare()  # before torch is loaded

import numpy as np
import torch
from mnist_train import Plain

import polyrelu
from polyrelu.estimator.head_training import HeadStart, location

WIDTH, RATE, BATCH = 500, 1e-3, 1000


class Clock(Progress):
    """Told of every pass; remembers the CPU time."""

    def __init__(self):
        self.stamps = []

    def update(self, **_):
        self.stamps.append(time.process_time())

    def a_pass(self):
        """CPU seconds of a pass, the first one left out."""
        return (self.stamps[-1] - self.stamps[0]) / (len(self.stamps) - 1)


def plain(data, epochs):
    """The same net as anyone would write it."""
    centre, unit = location(data)
    start = HeadStart(3.0, WIDTH, 10, centre.float(), unit, True, True, torch.float32, 0).random()
    net, clock = Plain(start, 3), Clock()
    X, y, loss = data.rows(), data.y, torch.nn.CrossEntropyLoss()
    adam = torch.optim.Adam(net.parameters(), lr=RATE)
    for _ in range(epochs):
        for index in torch.randperm(len(X)).split(BATCH):
            adam.zero_grad()
            loss(net(X[index]), y[index]).backward()
            adam.step()
        clock.update()
    return clock


def fit(epochs):
    data = polyrelu.data.read("mnist")
    X, y, clock = data.rows().numpy(), data.y.numpy(), Clock()
    head = polyrelu.PolyReLUClassifier(
        width=WIDTH, epochs=epochs, rate=RATE, batch=BATCH, bias=True, init="random", random_state=0
    )
    began = time.process_time()
    head.fit(X, y, progress=clock)
    whole = time.process_time() - began
    torch.manual_seed(0)
    peer = plain(data, epochs)
    print(f"fit {len(X)} x {X.shape[1]}, width {WIDTH}: a pass takes {clock.a_pass():.2f} CPU s, the plain loop")
    once = whole - len(clock.stamps) * clock.a_pass()
    print(f"  {peer.a_pass():.2f} CPU s: ratio {clock.a_pass() / peer.a_pass():.2f}; once a fit {once:.1f} CPU s")


def anonymous():
    """MiB of memory of the process itself."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


class Peak(threading.Thread):
    """The largest memory beyond that at the start, looked at fifty times a second."""

    def __enter__(self):
        self.before = self.most = anonymous()
        self.going = True
        self.start()
        return self

    def run(self):
        while self.going:
            self.most = max(self.most, anonymous())
            time.sleep(0.02)

    def __exit__(self, *_):
        self.going = False
        self.join()

    def __str__(self):
        return f"{self.most - self.before:.0f} MiB"


def rows(count, dim=128):
    with tempfile.TemporaryDirectory() as folder:
        mix = polyrelu.OrthonormalMixture(dim=dim, positive=6, negative=4, alpha=0.3)
        sample = mix.sample(10_000, seed=0)
        file = Path(folder) / "X.npy"
        X = np.lib.format.open_memmap(file, "w+", np.float32, (count, dim))
        y = np.empty(count, np.int64)
        for start in range(0, count, 10_000):
            some = min(10_000, count - start)
            X[start : start + some], y[start : start + some] = sample.rows(0, some).numpy(), sample.y[:some].numpy() > 0
        X.flush()
        del X
        X = np.load(file, mmap_mode="r")
        print(f"rows: {count} x {dim} in a file of {file.stat().st_size / 2**20:.0f} MiB")
        head = polyrelu.PolyReLUClassifier(epochs=1, random_state=0)
        for name, call in (
            ("fit, one pass", lambda: head.fit(X, y)),
            ("predict", lambda: head.predict(X)),
            ("predict_proba", lambda: head.predict_proba(X)),
        ):
            began = time.process_time()
            with Peak() as peak:
                call()
            print(f"  {name}: {time.process_time() - began:.1f} CPU s, {peak} more memory", flush=True)


def certify(points):
    train, test = polyrelu.data.read("mnist"), polyrelu.data.read("mnist:validation")
    X, y = train.rows(0, 10_000).numpy(), train.y[:10_000].numpy()
    began = time.process_time()
    head = polyrelu.PolyReLUClassifier(random_state=0).fit(X, y)
    fitted = time.process_time() - began
    Z, truth = test.rows(0, points).numpy(), test.y[:points].numpy()
    unit = float(np.median(np.linalg.norm(X - X.mean(0), axis=1)))
    began, wall = time.process_time(), time.perf_counter()
    found = head.certify(Z, truth)
    spent, wall = time.process_time() - began, time.perf_counter() - wall
    line = polyrelu.curve(found)
    print(f"certify {points} images, ten digits: {spent:.1f} CPU s, {wall:.1f} s; fit {fitted:.1f} CPU s")
    for radius in (0.0, 0.1, 0.2, 0.3):
        both = line.certified(radius * unit), line.attacked(radius * unit)
        print(f"  at {radius:.1f} of {unit:.2f}: proven {both[0]:.3f}, unbroken {both[1]:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="*", default=["fit", "rows", "certify"])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--points", type=int, default=1000)
    asked = parser.parse_args()
    print(f"{torch.get_num_threads()} threads")
    if "fit" in asked.sections:
        fit(asked.epochs)
    if "rows" in asked.sections:
        rows(asked.rows)
    if "certify" in asked.sections:
        certify(asked.points)


if __name__ == "__main__":
    main()
