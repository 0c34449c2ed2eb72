"""The published MNIST recipe on the CPU, beside its peers in one run: `python benchmarks/mnist_train.py [--epochs 3]`.

Same start, same data, same number of steps (width 500, Adam 1e-3, batches of 1000, normalised inputs), for every p:
  ours     polyrelu.train.published_head
  plain    a PyTorch loop: autograd, torch.optim.Adam, batches by index
  loader   the published way: the same loop fed by a DataLoader with two workers, which collates row by row
  floor    the two matrix products of a step and nothing else
Seconds are for 51 epochs; with fewer --epochs those run are scaled up, and what is done but once (preparing, measuring
at both ends) is added as it is. CPU seconds (workers included) hold on a busy machine too.
"""

from __future__ import annotations

import argparse
import resource
import time

from polyrelu.threads import prepare

prepare()  # before torch is loaded

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import polyrelu
from polyrelu.train.descent import mean_row, published_head

WIDTH, RATE, BATCH, EPOCHS = 500, 1e-3, 1000, 51


def cpu():
    """CPU seconds of this process and of the workers it has seen end."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def now():
    return torch.tensor([time.perf_counter(), cpu()], dtype=torch.float64)


def timed(way, epochs):
    """Seconds and CPU seconds of ``way`` for EPOCHS epochs, and what it gave; it calls its argument at every epoch."""
    stamps, began = [], now()
    result = way(lambda *_: stamps.append(now()))
    within = stamps[epochs] - stamps[0]
    return now() - began - within + within * EPOCHS / epochs, result


class Plain(nn.Module):
    """relu((x - c) W)^p / |w_j|^(p-1) / |x - c|^(p-1), then a linear layer: the net as one would write it."""

    def __init__(self, start, p):
        super().__init__()
        self.p, self.centre = p, start.centre
        self.W = nn.Parameter(start.weight.detach().T.clone())
        self.head = nn.Linear(start.width, start.outputs)
        with torch.no_grad():
            self.head.weight.copy_(start.output)
            self.head.bias.copy_(start.bias)

    def forward(self, x):
        x = x - self.centre
        hidden = torch.relu(x @ self.W)
        if self.p != 1:
            scale = self.W.norm(dim=0) * x.norm(dim=1, keepdim=True)
            hidden = hidden**self.p / scale ** (self.p - 1)
        return self.head(hidden)


def by_index(data):
    X, y = data.rows(), data.y
    for index in torch.randperm(len(X)).split(BATCH):
        yield X[index], y[index]


def trained(net, batches, epochs, each_epoch):
    optimiser, loss = torch.optim.Adam(net.parameters(), lr=RATE), nn.CrossEntropyLoss()
    each_epoch()
    for _ in range(epochs):
        for x, y in batches():
            optimiser.zero_grad()
            loss(net(x), y).backward()
            optimiser.step()
        each_epoch()
    return net


def floor(data, epochs, each_epoch):
    """X U^T and Z^T X for every batch: what no two-layer net can do without."""
    x, u = data.rows(0, BATCH), torch.randn(WIDTH, data.dim)
    z, G = torch.empty(BATCH, WIDTH), torch.empty(WIDTH, data.dim)
    each_epoch()
    for _ in range(epochs):
        for _ in range(len(data) // BATCH):
            torch.mm(x, u.T, out=z)
            torch.mm(z.T, x, out=G)
        each_epoch()


def start(data, p):
    """The drawn net, before any step."""
    return polyrelu.PolyReLUNet(
        data.dim, WIDTH, p, data.classes, init="kaiming", seed=0, centre=mean_row(data), bias=True, normalise_input=True
    )


def accuracy(net, data):
    with torch.no_grad():
        return float((net(data.rows()).argmax(1) == data.y).double().mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--p", type=float, nargs="*", default=[1.0, 2.0, 3.0, 4.0])
    parser.add_argument("--ways", nargs="*", default=["floor", "ours", "plain", "loader"])
    asked = parser.parse_args()
    data, held_out = polyrelu.data.read("mnist"), polyrelu.data.read("mnist:validation")
    loader = DataLoader(TensorDataset(data.rows(), data.y), batch_size=BATCH, shuffle=True, num_workers=2)
    print(f"{len(data)} x {data.dim}, width {WIDTH}, {asked.epochs} epochs, {torch.get_num_threads()} threads")
    print(f"{'p':>4} {'way':7} {'seconds':>8} {'CPU s':>8} {'CPU / ours':>10} {'validation':>10}")
    for p in asked.p:
        torch.manual_seed(0)
        ways = {
            "floor": lambda each: floor(data, asked.epochs, each),
            "ours": lambda each, p=p: published_head(data, p, epochs=asked.epochs, each_epoch=each).net,
            "plain": lambda each, p=p: trained(Plain(start(data, p), p), lambda: by_index(data), asked.epochs, each),
            "loader": lambda each, p=p: trained(Plain(start(data, p), p), lambda: loader, asked.epochs, each),
        }
        found = {way: timed(ways[way], asked.epochs) for way in asked.ways}
        for way, (spent, net) in found.items():
            ratio = f"{spent[1] / found['ours'][0][1]:10.2f}" if "ours" in found else f"{'':10}"
            right = "" if net is None else f"{accuracy(net, held_out):10.4f}"
            print(f"{p:4g} {way:7} {spent[0]:8.1f} {spent[1]:8.1f} {ratio} {right}", flush=True)


if __name__ == "__main__":
    main()
