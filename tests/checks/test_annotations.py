"""Arguments are what their annotations say."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from polyrelu import InputError, PolyReLUNet
from polyrelu.checks import check_fields, checked, checked_output, enough_memory, plain_tensor, value_text


class Told(Protocol):
    def update(self, done: int) -> None: ...


@checked
def f(
    X: Tensor | None = None, n: int = 1, p: float = 1.0, on: bool = False, name: str = "a", path: str | Path = "a",
    net: nn.Module | None = None, norm: float | Literal["inf"] = 2.0, several: Sequence[float] = (),
    look: Callable[[int], int] | None = None, pair: tuple[float, float] | None = None,
    table: Mapping[str, Any] | None = None,
    told: Told | None = None, anything: Any = None, poly: PolyReLUNet | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Give back what came."""
    return dict(locals())


WRONG = [
    ("n", [1.0, True, "1", None, 2**63, -(2**63) - 1, np.float64(1), Decimal(1), [1], 1j]),
    ("p", [True, "1", None, Decimal(1), 1j, np.datetime64("2020"), [1.0], torch.ones(2)]),
    ("on", [1, 0, None, "True", np.int8(1)]),
    ("name", [1, None, b"a", Path("a")]),
    ("path", [1, None, b"a", "a\0b", ["a"], math.nan]),
    ("net", [1, "net", nn.Linear, lambda x: x]),
    ("poly", [nn.Linear(2, 1), "net"]),
    ("norm", ["2", None, [2]]),
    ("several", ["ab", b"ab", 1.0, {"a": 1}, ["a"], [None], [True]]),
    ("look", [1, "f", []]),
    ("pair", [(1.0, "a"), ([1], [2]), (1.0,), (1.0, 2.0, 3.0), 1.0, "ab"]),
    ("table", [[], 1, "a"]),
    ("told", [1, "a", {1}, {}, object(), dict]),
    ("X", ["a", object(), {"a": 1}, [[1], [1, 2]], np.array(["a"]), np.array([None]), np.array(["2020"], "M8[D]")]),
    ("X", [np.zeros(2, "V3"), np.zeros(2, "f4,i4"), np.array([1j]), torch.ones(2, dtype=torch.complex64),
           [10**30, "a"]]),
    ("X", [torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr, torch.ones(2, device="meta"),
           torch.ones(2).to(torch.float8_e4m3fn)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG for value in values])
def test_what_an_annotation_does_not_say_is_refused(name, value):
    with pytest.raises(InputError, match=f"^{name}[=.]"):
        f(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "same"),
    [
        ("n", np.int64(3), 3), ("n", -5, -5), ("p", 3, 3), ("p", Fraction(1, 4), 0.25), ("p", np.float32(0.5), 0.5),
        ("p", 10**20, 1e20), ("p", math.inf, math.inf), ("p", np.longdouble(2), 2.0), ("on", np.bool_(True), True),
        ("path", Path("a/b"), Path("a/b")), ("norm", "inf", "inf"), ("norm", 1, 1),
        ("several", np.array([1.0, 2.0]), [1.0, 2.0]),
        ("several", (1, 2.5), (1, 2.5)), ("pair", [0, 1.5], [0, 1.5]), ("X", None, None),
        ("anything", object, object),
        ("table", {"a": 1}, {"a": 1}), ("look", math.sqrt, math.sqrt),
    ],
)  # fmt: skip
def test_what_it_says_is_taken(name, value, same):
    found = f(**{name: value})[name]
    assert found == same and (type(found) is type(same) or isinstance(same, Path))


def test_arrays_and_lists_become_tensors_without_a_history():
    rows = np.arange(6.0).reshape(2, 3)
    rows.flags.writeable = False
    for given in (
        rows,
        rows.astype(">f8"),
        rows.tolist(),
        np.asfortranarray(rows),
        torch.tensor(rows, requires_grad=True),
    ):
        found = f(X=given)["X"]
        assert isinstance(found, Tensor) and not found.requires_grad and found.tolist() == rows.tolist()
    assert f(X=torch.ones(2, dtype=torch.float16))["X"].dtype == torch.float16


def test_modules_without_numbers_are_refused():
    lost = nn.Linear(2, 1)
    with torch.no_grad():
        lost.bias[0] = math.nan
    for net, words in (
        (nn.LazyLinear(2), "net=no numbers in 'weight' yet"),
        (nn.Linear(2, 1, device="meta"), "net=no numbers in 'weight' yet"),
        (lost, "net.bias=NaN: expected numbers"),
    ):
        with pytest.raises(InputError, match=words):
            f(net=net)
    assert f(net=nn.Identity())["net"] is not None


def test_fields_of_a_record_are_checked_and_converted():
    @dataclass(frozen=True)
    class Settings:
        n: int = 1
        p: float = 1.0

        def __post_init__(self):
            check_fields(self)

    Settings.__post_init__.__globals__.setdefault("Settings", Settings)
    assert Settings(np.int8(3), Fraction(1, 2)) == Settings(3, 0.5)
    with pytest.raises(InputError, match=r"^n=1\.5: expected a whole number"):
        Settings(1.5)


def test_sizes_beyond_memory_are_bad_input():
    @checked
    def ask(n: int) -> Any:
        return torch.empty(n, n)

    for n in (10**9, 2**40, 2**62):
        with pytest.raises(InputError, match="not enough memory for this ask"):
            ask(n)
    with pytest.raises(RuntimeError, match="negative dimension"):
        ask(-1)
    with pytest.raises(InputError, match="not enough memory for n=5 rows"), enough_memory("n=5 rows"):
        np.empty(2**60)
    with pytest.raises(ValueError, match="nothing of the sort"), enough_memory("n=5 rows"):
        raise ValueError("nothing of the sort")


@pytest.mark.parametrize(
    "score",
    [
        5, nn.Module(), nn.Linear(3, 1), lambda X: None, lambda X: (X, X), lambda X: X.sum(), lambda X: X.long(),
        lambda X: X[:1],
        lambda X: X[None], lambda X: X.numpy(), lambda X: X.to(torch.complex64), lambda X: {}[0], lambda X: X.nothing,
    ],
)  # fmt: skip
def test_a_score_that_does_not_answer_is_said_so(score):
    X = torch.ones(4, 2)
    with pytest.raises(InputError):
        checked_output(score, X)
    assert checked_output(nn.Linear(2, 3), X).shape == (4, 3) and checked_output(lambda X: X[:, 0], X).shape == (4,)


def test_values_are_shown_shortly_whatever_they_are():
    class Odd:
        def __repr__(self):
            raise ValueError("no")

    assert [value_text(5), value_text("a"), value_text(Odd()), value_text("x" * 99), value_text("a\nb")] == [
        "5",
        "'a'",
        "Odd",
        "str",
        "'a\\nb'",
    ]
    assert value_text("\ud800").encode()


def test_a_plain_tensor_names_its_argument():
    with pytest.raises(InputError, match=r"^centres=torch.sparse_coo tensor: expected a dense tensor"):
        plain_tensor("centres", torch.eye(2).to_sparse())
    with pytest.raises(InputError, match=r"^y=torch.complex64 labels: expected real numbers"):
        plain_tensor("y", torch.ones(2, dtype=torch.complex64), "labels")
