"""What one setting trains: x = mu_k + (alpha/sqrt(D)) g (Min & Vidal 2024), the same with fine labels, or digits.

Fine labels (Li et al., ICLR 2025): one logit for each sub-class while training; to answer "+1 or -1" the logits of
each class are added up, which is again a PolyReLUNet, with v_j = sum_k y_k V_kj.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from polyrelu.data import Dataset, OrthonormalMixture, read
from polyrelu.explorer.parameters import Setting
from polyrelu.nets import Polar, PolyReLUNet
from polyrelu.train.descent import mean_row

TEST_POINTS = 60  # fresh points that are bracketed
DIGITS_TRAIN, DIGITS_TEST = 600, 60  # training and test images


@final
@dataclass(frozen=True, eq=False)
class FlowProblem:
    """The net at its start, the rows it is trained on, fresh ones, and the sub-classes: centres (K, D), sides (K,)."""

    setting: Setting
    net: PolyReLUNet
    train: Dataset
    test: Dataset
    centres: Tensor
    sides: Tensor

    @property
    def names(self) -> list[str]:
        """What the page calls the sub-classes."""
        if self.setting.data == "digits":
            return [str(digit) for digit in range(10)]
        positive = int((self.sides > 0).sum())
        return [f"+{k + 1}" if k < positive else f"−{k + 1 - positive}" for k in range(len(self.sides))]

    @property
    def theory(self) -> dict[str, float]:
        """1/sqrt(K) and sqrt(2)/2 (Min & Vidal 2024, Theorem 1), where they are about these data."""
        if self.setting.data == "digits":
            return {}
        return {"average": 1 / math.sqrt(len(self.sides)), "centre": math.sqrt(2) / 2}

    def centred(self, rows: Tensor) -> Tensor:
        """Rows minus the centre of the net."""
        return rows if self.net.centre is None else rows - self.net.centre

    def columns(self) -> Tensor:
        """Unit vectors (A + 2, D) by which the page knows every neuron.

        The A axes are the centres, and in space what they leave out; then come the class means, [+1, -1].
        """
        axes = torch.nn.functional.normalize(self.centred(self.centres))
        if axes.shape == (2, 3):
            axes = torch.cat([axes, torch.linalg.cross(axes[0], axes[1])[None]])
        means = self.binary_labels(self.train).class_means()
        return torch.cat([axes, torch.nn.functional.normalize(self.centred(means))])

    def binary_labels(self, data: Dataset) -> Dataset:
        """The same rows with the labels +1/-1."""
        return data if data.binary else replace(data, y=self.sides[data.y])

    def binary(self, u: Tensor, read_out: Tensor, log_contribution: Tensor) -> PolyReLUNet:
        """The classifier +1/-1 of neurons at some moment, times a factor > 0 that makes its largest neuron 1."""
        logs = log_contribution + read_out.double().abs().log()
        half = (logs - logs.max()) / 2
        net = self.net
        kept: dict[str, Any] = {"centre": net.centre, "normalise_input": net.normalise_input, "dtype": net.dtype}
        like = PolyReLUNet(net.dim, len(u), net.p, init="zeros", **kept)
        sign = torch.where(read_out < 0, -1.0, 1.0).to(u.dtype)
        return PolyReLUNet.from_polar(Polar(u, sign[:, None], half, half), like=like)


def flow_problem(setting: Setting) -> FlowProblem:
    """The problem of a setting; the same setting gives the same numbers as the library does."""
    fine, more = setting.labels == "fine", dict[str, Any]()
    if setting.data == "digits":
        data = read("digits:parity")
        assert data.cluster is not None
        centres = torch.stack([data.rows()[data.cluster == digit].mean(0) for digit in range(10)])
        sides = torch.tensor([1.0 - 2 * (digit % 2) for digit in range(10)])
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(setting.seed))
        train, test = data.subset(order[:DIGITS_TRAIN]), data.subset(order[DIGITS_TRAIN : DIGITS_TRAIN + DIGITS_TEST])
    else:
        mixture = OrthonormalMixture(setting.dim, setting.positive, setting.negative, setting.alpha)
        centres, sides = mixture.centres, mixture.labels
        train, test = mixture.sample(setting.samples, setting.seed), mixture.sample(TEST_POINTS, setting.seed + 1)
    if fine:
        assert train.cluster is not None
        train = replace(train, y=train.cluster)
    if setting.data == "digits":
        more = {"centre": mean_row(train), "normalise_input": True}
    net = PolyReLUNet(
        train.dim, setting.width, setting.p, len(centres) if fine else 1,
        init=setting.start, scale=setting.scale, seed=setting.seed, **more,
    )  # fmt: skip
    return FlowProblem(setting, net, train, test, centres, sides)
