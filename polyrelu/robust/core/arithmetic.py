r"""Which arithmetic a proof speaks of: real numbers, or the net as it is executed in float32 or float64.

A net executed with unit roundoff u (2^-24, 2^-53) and smallest normal number w computes, at x + d with z = x + d - c,

    logit_k = sum_j V_kj (1 + a_kj) relu(<u_j, z> + e_j)^p  [ |z|^(1-p) ]  + b_k (1 + a_k) + o_k,
    |a| <= relative = gamma(h + 6 p + 32 [+ 90 p]),   |e_j| <= gamma(D + 12) |z| + 2 u |c|,   |o_k|  of the size of w,

gamma(n) = n u / (1 - n u), in any order of summation, in any batch, on any number of threads, with or without fused
multiply-add (Higham 2002, chapters 3 and 4). D roundings are those of a product of D terms; 12 those of the input (made
the net's dtype), of x - c, of the division by |w_j|, and by |z| where inputs are normalised; h those of the sum over
neurons; 90 p is for a p that is no float32 number, of which vectorised powers take the rounded value.

A certificate holds for the executed net if it holds for every such a, e and o: coefficients V_yj - V_cj become smaller
by relative (|V_yj| + |V_cj|), pre-activations are blurred by e. This is for the CPU, with torch's float32 matrix
products at their full precision and no autocast, and for ONNX Runtime's CPU provider. Searching for points where
rounding flips a decision inside a proven radius: Jin, Ohrimenko & Rubinstein, arXiv 2205.10159.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import torch

from polyrelu.errors import require


@final
@dataclass(frozen=True)
class Arithmetic:
    """``unit`` roundoff, the ``least`` normal and the ``most`` number of a type; 0, 0 and inf for real numbers.

    ``name`` is "real", "float32" or "float64", ``text`` what is said to people.
    """

    name: str
    text: str
    unit: float = 0.0
    least: float = 0.0
    most: float = torch.inf

    def gamma(self, n: float) -> float:
        """n u / (1 - n u): the relative error of n roundings; inf where they may leave nothing."""
        return n * self.unit / (1 - n * self.unit) if n * self.unit < 0.5 else torch.inf


REAL: Final = Arithmetic("real", "real arithmetic with the stored weights")
EXECUTED: Final = {
    dtype: Arithmetic(
        name,
        f"{name} as executed on the CPU",
        torch.finfo(dtype).eps / 2,
        torch.finfo(dtype).tiny,
        torch.finfo(dtype).max,
    )
    for name, dtype in (("float32", torch.float32), ("float64", torch.float64))
}
NAMES: Final = {one.name: one for one in (REAL, *EXECUTED.values())}


def arithmetic_of(given: Arithmetic | str) -> Arithmetic:
    """``given`` itself, or the arithmetic of this name."""
    if isinstance(given, Arithmetic):
        return given
    require(isinstance(given, str) and given in NAMES, "arithmetic", repr(given), " or ".join(map(repr, NAMES)))
    return NAMES[given]


@final
@dataclass(frozen=True)
class Execution:
    """What execution adds to the real net, in units in which its largest coefficient is 1 (see the module); 0 if real.

    relative : |a|, of a term and of a bias; coefficient : absolute error of a coefficient, where it underflows
    blur : of pre-activations, for each unit of |z|; shifted : the same from the subtraction of the centre
    spare : of a logit, where terms underflow, at |z| <= 1; longest : |z| up to which nothing overflows
    """

    relative: float = 0.0
    coefficient: float = 0.0
    blur: float = 0.0
    shifted: float = 0.0
    spare: float = 0.0
    longest: float = torch.inf
