"""The papers whose statements are measured again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Paper:
    """Who, what, where; ``address`` is where it can be read, or ""."""

    authors: str
    title: str
    venue: str
    address: str = ""

    @property
    def citation(self) -> str:
        """One line of a list of references."""
        return f"{self.authors}: “{self.title}”, {self.venue}"


PAPERS = {
    "MV24": Paper(
        "Min, Vidal", "Can Implicit Bias Imply Adversarial Robustness?", "ICML 2024, PMLR 235:35687–35718",
        "https://arxiv.org/abs/2405.15942",
    ),
    "MV25": Paper(
        "Min, Vidal", "Gradient Flow Provably Learns Robust Classifiers for Orthonormal GMMs",
        "ICML 2025, PMLR 267:44292–44350", "https://openreview.net/forum?id=y6aT5rlrlv",
    ),
    "LPLL25": Paper(
        "Li, Pan, Lyu, Li",
        "Feature Averaging: An Implicit Bias of Gradient Descent Leading to Non-Robustness in Neural Networks",
        "ICLR 2025", "https://arxiv.org/abs/2410.10322",
    ),
    "LL20": Paper(
        "Lyu, Li", "Gradient Descent Maximizes the Margin of Homogeneous Neural Networks", "ICLR 2020",
        "https://arxiv.org/abs/1906.05890",
    ),
    "FVBS23": Paper(
        "Frei, Vardi, Bartlett, Srebro",
        "The Double-Edged Sword of Implicit Bias: Generalization vs. Robustness in ReLU Networks", "NeurIPS 2023",
        "https://arxiv.org/abs/2303.01456",
    ),
    "VYS22": Paper(
        "Vardi, Yehudai, Shamir", "Gradient Methods Provably Converge to Non-Robust Networks", "NeurIPS 2022",
        "https://arxiv.org/abs/2202.04347",
    ),
    "LLWA21": Paper(
        "Lyu, Li, Wang, Arora", "Gradient Descent on Two-layer Nets: Margin Maximization and Simplicity Bias",
        "NeurIPS 2021", "https://arxiv.org/abs/2110.13905",
    ),
    "MMV24": Paper(
        "Min, Mallada, Vidal",
        "Early Neuron Alignment in Two-layer ReLU Networks with Small Initialization", "ICLR 2024",
        "https://arxiv.org/abs/2307.12851",
    ),
    "ours": Paper("polyrelu", "Derived here, to check the papers and the measurements", "not published"),
}  # fmt: skip
