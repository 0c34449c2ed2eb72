"""What every bound takes off for rounding, in units of the unit roundoff: no term of it may get lost.

Rounding allowances are generous, so that no net shows when one of several is gone. Here the unit roundoff (and, on its
own, the size below which powers count as underflowed) is made larger, and what functions of the certificates return is
compared with what they return usually: the difference over the unit is how many roundings are allowed for, a number
that depends on nothing else. Likewise for nets executed in an arithmetic of large unit, or one that soon under- or
overflows. The numbers kept in allowances.json were right when each term was derived; after a change
that is meant, WRITE_ALLOWANCES=1 pytest tests/robust/certify/test_allowances.py writes them anew.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet
from polyrelu.robust import REAL, Arithmetic, Budget, linear_radius, quadratic_radius, root_lipschitz_radius
from polyrelu.robust.certify import certify, krylov_radius
from polyrelu.robust.core import ReducedNet

KNOWN = Path(__file__).with_name("allowances.json")
WRITE = bool(os.environ.get("WRITE_ALLOWANCES"))
LARGE = 1e-10
CALLS = 3  # of each function that are looked at
CERTIFY, CORE = "polyrelu.robust.certify", "polyrelu.robust.core"
FUNCTIONS = [  # whatever a bound is made of
    *(
        (f"{CORE}.scaled_net", f"ScaledNet.{name}")
        for name in ("pairs", "place", "scaled_bias", "constants", "worst", "rounded_down")
    ),
    (f"{CORE}.scaled_net", "_execution"),
    *((f"{CERTIFY}.lipschitz", name) for name in ("steepest_falls", "_top", "_between", "_correlated", "_halved")),
    (f"{CERTIFY}.lipschitz", "LipschitzConstants._chunk"),
    *(
        (f"{CERTIFY}.linear", name)
        for name in (
            "DualCoordinates.from_net",
            "Growth.from_coefficients",
            "LinearRows.bound",
            "_rooted",
            "_steepest_gap",
        )
    ),
    *(
        (f"{CERTIFY}.quadratic", name)
        for name in ("SpanCoordinates.from_net", "rows_of", "QuadraticRows.below", "QuadraticRows.bound", "_least")
    ),
    *((f"{CERTIFY}.krylov", name) for name in ("_krylov_quadratic", "_ball", "_least")),
    (f"{CORE}.relaxation", "_NewtonSearch.advance"),
    *(
        (f"{CORE}.reduced_net", name)
        for name in ("ReducedNet.slack", "ReducedNet._constant", "ReducedRows.scaled", "ReducedNet.from_net")
    ),
]


def net_of(p: float, kind: str, dim: int, width: int) -> tuple[PolyReLUNet, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(int(10 * p) + dim)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    outputs = 3 if kind == "classes" else 1
    bias, normalise = kind != "plain", kind in ("normalised", "classes")
    net = PolyReLUNet(dim, width, p, outputs, bias=bias, normalise_input=normalise, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(normal(width, dim))
        net.output.copy_(normal(outputs, width))
        if net.bias is not None:
            net.bias.copy_(0.3 * normal(outputs))
        X = 1.5 * normal(3, dim)
        logits = net(X)
    return net, X, torch.where(logits > 0, 1.0, -1.0).double() if outputs == 1 else logits.argmax(dim=1)


def leaves(net: PolyReLUNet, X: Tensor, y: Tensor, arithmetic: Arithmetic) -> None:
    shallow = ReducedNet.from_net(net, arithmetic=arithmetic)
    rows = shallow.rows(X, y)
    upper = torch.full((len(X),), 0.2, dtype=torch.float64)
    certify(shallow, X, y, rows, rows.s, upper, tol=1e-3, budget=Budget(nodes=0))


RUNS: dict[str, Callable[..., Any]] = {
    "cheap, l1": lambda net, X, y, a: root_lipschitz_radius(net, X, y, 1, arithmetic=a),
    "cheap, l2": lambda net, X, y, a: root_lipschitz_radius(net, X, y, 2, arithmetic=a),
    "cheap, linf": lambda net, X, y, a: root_lipschitz_radius(net, X, y, math.inf, arithmetic=a),
    "linear, l1": lambda net, X, y, a: linear_radius(net, X, y, 1, steps=1, arithmetic=a),
    "linear, l2": lambda net, X, y, a: linear_radius(net, X, y, 2, steps=1, arithmetic=a),
    "linear, linf": lambda net, X, y, a: linear_radius(net, X, y, math.inf, steps=1, arithmetic=a),
    "quadratic": lambda net, X, y, a: quadratic_radius(net, X, y, arithmetic=a),
    "quick": lambda net, X, y, a: krylov_radius(net, X, y, -0.1 * X, a),
    "leaves": leaves,
}


def coarse(unit: float, least: float = 0.0, most: float = 1e300) -> Arithmetic:
    return Arithmetic("coarse", "coarse", unit, least, most)


class Family(NamedTuple):
    """Constants ``names`` set to ``size`` (to the power p for DUST); an ``arithmetic`` beside a ``usual`` one."""

    names: tuple[str, ...] = ()
    size: float = 0.0
    arithmetic: Arithmetic = REAL
    usual: Arithmetic = REAL
    scale: float = LARGE  # what differences are divided by


FAMILIES = {
    "unit": Family(("UNIT", "ROUNDING"), LARGE),
    "dust": Family(("DUST",), LARGE),
    "executed": Family(arithmetic=coarse(LARGE), usual=coarse(1e-15)),
    "alike": Family(("UNIT",), LARGE, coarse(LARGE), coarse(2.0**-53)),
    "underflow": Family(arithmetic=coarse(1e-15, LARGE), usual=coarse(1e-15)),
    "overflow": Family(arithmetic=coarse(1e-15, most=200.0), usual=coarse(1e-15, most=math.inf), scale=1e-3),
}
CASES = [
    (run, p, kind, dim, width)
    for run in RUNS
    for p, kind, dim, width in [
        (1.0, "bias", 4, 7),
        (1.0, "classes", 24, 5),
        (1.5, "bias", 4, 7),
        (2.0, "normalised", 24, 5),
        (2.0, "plain", 4, 7),
        (3.0, "classes", 4, 7),
        (3.5, "normalised", 24, 5),
    ]
    if p == 1 or p >= 2 or run not in ("quadratic", "quick")
    if kind in ("classes", "normalised") or run[-2:] not in ("l1", "nf")
]


def numbers(found: Any) -> Iterator[float]:
    """The sum of every floating tensor in what was returned; of a net or a frame, of all its fields."""
    if isinstance(found, Tensor):
        if found.is_floating_point():
            yield float(found.nan_to_num(0.0, 0.0, 0.0).sum())
    elif isinstance(found, float):
        yield found if math.isfinite(found) else 0.0
    elif isinstance(found, (tuple, list)):
        for part in found:
            yield from numbers(part)
    elif dataclasses.is_dataclass(found) and not isinstance(found, type):
        for field in dataclasses.fields(found):
            yield from numbers(getattr(found, field.name))


def watched(monkeypatch: pytest.MonkeyPatch, seen: dict[str, list[float]]) -> None:
    """Note what the functions return."""
    for name, path in FUNCTIONS:
        module = importlib.import_module(name)
        owner, _, last = path.rpartition(".")
        holder = getattr(module, owner) if owner else module
        inner, fixed = getattr(holder, last), isinstance(vars(holder)[last], staticmethod)
        key, count = f"{name.rsplit('.', 1)[-1]}.{path}", [0]

        def outer(*given: Any, inner=inner, key=key, count=count, **more: Any) -> Any:
            found = inner(*given, **more)
            count[0] += 1
            if count[0] <= CALLS:
                state = given[0].bound if found is None else found  # a search that keeps its bound
                seen.setdefault(key, []).extend(numbers(state))
            return found

        monkeypatch.setattr(holder, last, staticmethod(outer) if fixed else outer)
        if not owner:
            for other in list(sys.modules.values()):
                if getattr(other, "__name__", "").startswith("polyrelu.") and vars(other).get(last) is inner:
                    monkeypatch.setattr(other, last, outer)


def returned(monkeypatch: pytest.MonkeyPatch, run: str, case: tuple[Any, ...], family: Family):
    """What the functions return."""
    seen: dict[str, list[float]] = {}
    size = family.size ** case[0].p if "DUST" in family.names else family.size
    with monkeypatch.context() as patch:
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("polyrelu.robust"):
                for name in family.names:
                    if isinstance(vars(module).get(name), float):
                        patch.setattr(module, name, size)
        watched(patch, seen)
        RUNS[run](*case, family.arithmetic)
    return seen


def together(numbers: list[float]) -> float:
    """One number for several, none of which can change unseen."""
    return sum((1 + 0.61803 * k % 1) * number for k, number in enumerate(numbers))


@pytest.mark.slow
@pytest.mark.parametrize("run, p, kind, dim, width", CASES)
def test_allowances_are_what_they_were(monkeypatch, run: str, p: float, kind: str, dim: int, width: int) -> None:
    case = net_of(p, kind, dim, width)
    known = json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    about = f"{run}, p={p:g}, {kind}, {dim} x {width}"
    there = {} if WRITE else known.get(about, {})
    found: dict[str, float] = {}
    usual = {
        one: returned(monkeypatch, run, case, Family(arithmetic=one)) for one in {f.usual for f in FAMILIES.values()}
    }
    for name, family in FAMILIES.items():
        plain = usual[family.usual]
        large = returned(monkeypatch, run, case, family)
        assert large.keys() == plain.keys()
        for function, before in plain.items():
            after = large[function]
            change = together([(two - one) / family.scale for one, two in zip(before, after, strict=True)])
            if abs(change) > 0.05:
                found[f"{function}, {name}"] = float(f"{change:.5g}")
    if WRITE:
        known[about] = found
        KNOWN.write_text(json.dumps(known, sort_keys=True).replace("}, ", "},\n") + "\n", encoding="utf-8")
        return
    wrong = [
        (key, found.get(key), there.get(key))
        for key in sorted({*found, *there})
        if found.get(key, 0.0) != pytest.approx(there.get(key, 0.0), rel=1e-3, abs=0.1)
    ]
    assert not wrong
