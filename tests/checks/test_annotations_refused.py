"""Arguments are what their annotations say: one value of each kind that is refused, and what passes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from polyrelu.checks import check_fields, checked, checked_output, dense, enough_memory, plain_tensor
from polyrelu.checks.tensors import raise_if_memory
from polyrelu.errors import InputError


class Named(Protocol):
    name: str

    def rows(self) -> int: ...


class Good:
    name = "x"

    def rows(self) -> int:
        return 1


class Half:
    name = "x"


@checked
def f(
    *,
    real: float = 1.0,
    whole: int = 1,
    flag: bool = False,
    text: str = "",
    path: str | Path = "",
    maybe: float | None = None,
    either: float | str = 2,
    word: Literal["a", "b"] = "a",
    call: Callable[[int], int] | None = None,
    numbers: Sequence[float] = (),
    many: Iterable[int] = (),
    pair: tuple[float, float] | None = None,
    table: Mapping[str, Any] | None = None,
    tensor: Tensor | None = None,
    module: nn.Module | None = None,
    linear: nn.Linear | None = None,
    named: Named | None = None,
    anything: Any = None,
) -> dict[str, Any]:
    return dict(locals())


class Unset(nn.Module):
    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(value)


GOOD = [
    ("real", 2, 2),
    ("real", np.float32(0.5), 0.5),
    ("real", Fraction(1, 2), 0.5),
    ("real", 2**60, float(2**60)),
    ("whole", np.int8(3), 3),
    ("whole", 2**63 - 1, 2**63 - 1),
    ("whole", -(2**63), -(2**63)),
    ("flag", np.bool_(True), True),
    ("text", "x", "x"),
    ("path", Path("x"), Path("x")),
    ("path", "x", "x"),
    ("maybe", None, None),
    ("maybe", 3, 3),
    ("either", "x", "x"),
    ("either", 0.5, 0.5),
    ("word", "b", "b"),
    ("call", abs, abs),
    ("numbers", [1, 2.5], [1, 2.5]),
    ("numbers", (1,), (1,)),
    ("many", range(3), [0, 1, 2]),
    ("pair", (1, 2), (1, 2)),
    ("table", {"a": 1}, {"a": 1}),
    ("anything", object, object),
]


@pytest.mark.parametrize(("name", "value", "found"), GOOD, ids=str)
def test_what_fits_passes_as_pythons_own(name, value, found):
    got = f(**{name: value})[name]
    assert got == found and type(got) is type(found)


BAD = [
    ("real", True),
    ("real", "1"),
    ("real", None),
    ("real", 1j),
    ("real", [1.0]),
    ("real", 10**400),
    ("whole", True),
    ("whole", 1.0),
    ("whole", "1"),
    ("whole", 2**63),
    ("whole", -(2**63) - 1),
    ("flag", 1),
    ("flag", "yes"),
    ("flag", None),
    ("text", 1),
    ("text", b"x"),
    ("text", None),
    ("path", 1),
    ("path", b"x"),
    ("path", "a\0b"),
    ("path", "\ud800"),
    ("maybe", "x"),
    ("either", b"x"),
    ("either", None),
    ("word", "c"),
    ("word", 1),
    ("call", 3),
    ("numbers", "12"),
    ("numbers", b"12"),
    ("numbers", {1: 2}),
    ("numbers", 3),
    ("numbers", ["x"]),
    ("many", [1.5]),
    ("pair", (1,)),
    ("pair", (1, 2, 3)),
    ("table", [1]),
    ("tensor", "x"),
    ("tensor", [[1], [1, 2]]),
    ("tensor", torch.ones(2, dtype=torch.complex64)),
    ("tensor", torch.eye(2).to_sparse()),
    ("tensor", torch.empty(2, device="meta")),
    ("tensor", torch.ones(2).to(torch.float8_e4m3fn)),
    ("module", 3),
    ("module", nn.LazyLinear(3)),
    ("module", nn.Linear(2, 2, device="meta")),
    ("module", Unset(torch.full((2,), math.nan))),
    ("module", Unset(torch.eye(2).to_sparse())),
    ("linear", nn.ReLU()),
    ("named", Half()),
    ("named", 3),
    ("named", Good),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda one: repr(one)[:30])
def test_what_does_not_fit_is_refused_by_its_name(name, value):
    with pytest.raises(InputError, match=rf"^{name}\b"):
        f(**{name: value})


def test_tensors_modules_and_likenesses_pass():
    assert torch.equal(f(tensor=[1.0, 2.0])["tensor"], torch.tensor([1.0, 2.0]).double())
    given = torch.ones(2, requires_grad=True)
    assert not f(tensor=given)["tensor"].requires_grad
    net, one = nn.Linear(2, 2), Good()
    assert f(module=net, linear=net)["linear"] is net and f(named=one)["named"] is one
    assert f(module=Unset(torch.full((2,), math.inf)))["module"]  # only NaN is no number at all


def test_quantised_tensors_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)
    with pytest.raises(InputError, match="x=quantised tensor"):
        dense("x", given)
    with pytest.raises(InputError, match="tensor="):
        f(tensor=given)


def test_a_default_is_not_asked_what_it_is():
    @checked
    def g(x: int = "text") -> Any:  # type: ignore[assignment]
        return x

    assert g() == "text" and g(g()) == "text"
    with pytest.raises(InputError, match="x="):
        g("other")


def test_fields_of_a_record():
    @dataclass(frozen=True)
    class Record:
        size: int = 3
        name: str = ""

        def __post_init__(self) -> None:
            check_fields(self)

    globals()["Record"] = Record
    assert Record(np.int64(4)).size == 4 and type(Record(np.int64(4)).size) is int
    for given in ({"size": 1.5}, {"size": "3"}, {"name": 3}):
        with pytest.raises(InputError, match=next(iter(given))):
            Record(**given)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), True),
        (OverflowError("x"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("something else"), False),
        (ValueError("array is too big; `arr.size"), True),
    ],
)
def test_sizes_that_no_memory_holds(error, told):
    if told:
        with pytest.raises(InputError, match="not enough memory for sizes"):
            raise_if_memory(error, "sizes")
    else:
        raise_if_memory(error, "sizes")

    @checked
    def g(x: int) -> None:
        raise error

    if isinstance(error, (MemoryError, RuntimeError)):
        with pytest.raises(InputError if told else RuntimeError):
            g(1)
    with pytest.raises(InputError if told else RuntimeError), enough_memory("sizes"):
        raise error


def test_plain_tensors_from_anything_with_numbers():
    backwards = np.arange(3.0)[::-1]
    assert plain_tensor("x", backwards).tolist() == [2.0, 1.0, 0.0]
    assert plain_tensor("x", np.arange(3, dtype=">i4")).tolist() == [0, 1, 2]
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    assert plain_tensor("x", fixed).tolist() == [0.0, 1.0, 2.0]
    assert dense("x", torch.ones(2)).tolist() == [1.0, 1.0]
    for bad in (["a"], object(), [None]):
        with pytest.raises(InputError, match="x="):
            plain_tensor("x", bad)


ROWS = torch.ones(3, 2)


@pytest.mark.parametrize(
    "score",
    [
        3,
        lambda X: X.sum(),
        lambda X: X[:1],
        lambda X: X[None],
        lambda X: X.long(),
        lambda X: X.numpy(),
        lambda X: None,
        lambda X: X @ torch.ones(5),
        lambda X: X.nothing,
        lambda X: [][0],
    ],
    ids=range(10),
)
def test_scores_answer_with_a_row_of_floating_numbers_each(score):
    with pytest.raises(InputError):
        checked_output(score, ROWS)
    assert checked_output(lambda X: X, ROWS).shape == (3, 2) and checked_output(lambda X: X[:, 0], ROWS).shape == (3,)
