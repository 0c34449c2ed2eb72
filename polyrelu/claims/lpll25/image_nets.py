"""Nets trained on images with all classes or with two, as the feature-averaging paper compares them (Li et al. 2025).

halves of the classes:  parity of the digit (MNIST),  first five against last five (CIFAR-10)
the published nets are ResNet-18; stochastic gradient descent with momentum .9 (Nesterov), rate .1 falling to 0 as a
cosine, weight decay 5e-4, batches of 128; the recipe is a third party's, the paper's own is not known
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.claims.lpll25.sizes import ImageTask
from polyrelu.claims.setups import digit_nets
from polyrelu.data import Dataset, read, relabel
from polyrelu.data.images import cached
from polyrelu.nets import MLP, ResNet
from polyrelu.train import Until, descend

RATE = 0.1  # of the ResNets, at first


def pictures(task: ImageTask, seed: int) -> tuple[Dataset, Dataset]:
    """Images to train on and images to attack, with all their classes."""
    if task.images == "digits":
        train, test = digit_nets.images("quick", seed)
        return train, test.subset(slice(task.attacked))
    test = read(f"{task.images}:test")
    rows = torch.randperm(len(test), generator=torch.Generator().manual_seed(seed))
    return read(task.images).subset(slice(task.samples)), test.subset(rows[: task.attacked])


def needs(task: ImageTask) -> str:
    """What must be fetched first, or ""."""
    name = task.images.removesuffix("-full")
    there = name == "digits" or cached(name) is not None
    return "" if there else f"needs {name}: polyrelu data fetch {name}"


def trained(task: ImageTask, data: Dataset, seed: int) -> nn.Module:
    """The net of this task for the labels that ``data`` has: an MLP for 8 x 8 digits, a ResNet for other images."""
    outputs = 1 if data.binary else data.classes
    if task.images == "digits":
        loss, batch = "logistic" if data.binary else "cross_entropy", 130
        net = MLP(data.dim, 64, 3, outputs, bias=True, seed=seed)
        steps = task.epochs * math.ceil(len(data) / batch)
        run = descend(net, data, method="adam", rate=1e-2, loss=loss, batch=batch, steps=steps, every=task.epochs,
                      until=Until(log10_loss=-100), seed=seed)  # fmt: skip
        return run.net.requires_grad_(False)
    channels = 3 if task.images == "cifar10" else 1
    resnet = ResNet(channels, math.isqrt(data.dim // channels), outputs, task.blocks, task.width, seed=seed)
    return train(resnet, data, task.epochs, seed, shift=channels == 3).eval().requires_grad_(False)


def train(net: ResNet, data: Dataset, epochs: int, seed: int = 0, shift: bool = False) -> ResNet:
    """Train ``net`` itself by the recipe above; ``shift``: images moved by up to 4 pixels and mirrored at random."""
    source = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9, nesterov=True, weight_decay=5e-4)
    total, done = epochs * math.ceil(len(data) / 128), 0
    net.train()
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(data), generator=source), 128):
            for group in optimiser.param_groups:
                group["lr"] = RATE * (1 + math.cos(math.pi * done / total)) / 2
            X, y = net.images(data.gather(rows)), data.y[rows]
            logits = net(moved(X, source) if shift else X)
            loss = functional.softplus(-y * logits).mean() if data.binary else functional.cross_entropy(logits, y)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            done += 1
    return net


def moved(images: Tensor, source: torch.Generator) -> Tensor:
    """Every image moved by -4..4 pixels each way (zeros come in) and mirrored with probability 1/2."""
    n, _, side, _ = images.shape
    padded = functional.pad(images, (4, 4, 4, 4))
    down, right = torch.randint(9, (2, n), generator=source).tolist()
    mirrored = torch.rand(n, generator=source).lt(0.5).tolist()
    cut = [one[:, i : i + side, j : j + side] for one, i, j in zip(padded, down, right, strict=True)]
    return torch.stack([one.flip(2) if turn else one for one, turn in zip(cut, mirrored, strict=True)])


def embedding(net: nn.Module, X: Tensor) -> Tensor:
    """What the last layer of a net made here sees."""
    if isinstance(net, ResNet):
        return torch.cat([net.features(part) for part in torch.split(X, 256)])
    assert isinstance(net, MLP)
    for weight, bias in zip(net.weights[:-1], net.biases, strict=False):
        X = functional.linear(X, weight, bias).relu()
    return X


def halved(data: Dataset, task: ImageTask) -> tuple[Dataset, Tensor]:
    """The set with two labels, and the label +1 or -1 of every class."""
    coarse = relabel(data, task.halves)
    signs = torch.zeros(data.classes, dtype=data.dtype)
    signs[data.y] = coarse.y
    return coarse, signs
