"""Tensors, scores and modules, checked: real numbers, dense, at hand, and of sizes that memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polyrelu.errors import InputError, require

if TYPE_CHECKING:
    from torch import Tensor

TOO_LARGE = (
    "allocate memory", "Storage size calculation", "Maximum allowed dimension", "Overflow when unpacking",
    "array is too big",
)  # fmt: skip


def plain_tensor(argument: str, given: object, what: str = "numbers") -> Tensor:
    """A dense tensor of real numbers from one, from a numpy array (read-only, any byte order) or a list of numbers."""
    import numpy as np
    import torch

    if not isinstance(given, torch.Tensor):
        try:
            array = np.asarray(given)
            given = torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C", subok=False))
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise InputError(
                f"{argument}={type(given).__name__}: expected a tensor, array or list of numbers."
            ) from None
    return dense(argument, given, what).detach()


def plain_array(argument: str, given: Tensor) -> Any:
    """A tensor as a numpy array, whatever device it is on; bfloat16, which numpy has not, as float32."""
    import torch

    values = plain_tensor(argument, given).cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()


def dense(argument: str, given: Tensor, what: str = "numbers") -> Tensor:
    """``given`` if it is a tensor that arithmetic works with: real numbers at hand, in rows and columns."""
    import torch

    if given.is_quantized:
        kind = "quantised"
    elif given.is_nested:
        kind = "nested"
    elif given.device.type == "meta":
        kind = "meta"
    else:
        kind = "dense" if given.layout == torch.strided else str(given.layout)
    allowed = "a dense tensor with numbers in it; X.to_dense() and X.dequantize() make one"
    require(kind == "dense", argument, f"{kind} tensor", allowed)
    require(not given.is_complex(), argument, f"{given.dtype} {what}", "real numbers")
    small = given.is_floating_point() and given.dtype.itemsize < 2
    require(not small, argument, f"{given.dtype} {what}", "float32 or float64; convert with X.float()")
    return given


def checked_output(score: Callable[[Tensor], Any], X: Tensor, name: str = "score") -> Tensor:
    """``score(X)``; an InputError where it does not take X, or does not answer with floating numbers, a row each."""
    from torch import Tensor

    require(callable(score), name, type(score).__name__, "a module or another function of rows")
    try:
        found = score(X)
    except (RuntimeError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        what, why = f"X of shape {tuple(X.shape)} and type {X.dtype}", str(error) or type(error).__name__
        raise InputError(
            f"{what}: expected what the {name} takes, but it says: {why.splitlines()[0].rstrip('.')}."
        ) from error
    good = isinstance(found, Tensor) and found.is_floating_point() and found.ndim in (1, 2) and len(found) == len(X)
    shape = f" of shape {tuple(found.shape)} and type {found.dtype}" if isinstance(found, Tensor) else ""
    wanted = "floating numbers, (n,) for one logit or (n, C)"
    require(good, f"{name}(X)", f"{type(found).__name__}{shape} for {len(X)} rows", wanted)
    return found  # type: ignore[no-any-return]


def check_module(value: Any) -> Any:
    """A module with numbers in it: not one that is still to be made, nor one that has lost its weights to NaN.

    A net of ours is as its constructor makes them, too: its settings may have been set since.
    """
    from torch import strided
    from torch.nn.parameter import is_lazy

    for name, tensor in tensors_of(value):
        lazy = is_lazy(tensor) or tensor.device.type == "meta"
        require(not lazy, "net", f"no numbers in {name!r} yet", "a module with weights")
        require(not tensor.is_quantized and tensor.layout == strided, "net", f"odd {name!r}", "dense weights")
        require(not tensor.isnan().any(), f"net.{name}", "NaN", "numbers; infinity is one, in a mask for example")
    if hasattr(value, "check_settings"):
        value.check_settings()
    return value


def tensors_of(module: Any) -> list[tuple[str, Tensor]]:
    """All parameters and buffers by name; an InputError where a layer is no module, as torch lets it be."""
    try:
        return [*module.named_parameters(), *module.named_buffers()]
    except AttributeError as error:
        raise InputError(f"net={type(module).__name__}: expected a module with modules for layers ({error}).") from None


@contextmanager
def enough_memory(what: str) -> Iterator[None]:
    """Sizes that no memory holds, asked for inside, become an InputError about ``what``."""
    try:
        yield
    except (MemoryError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise_if_memory(error, what)
        raise


def raise_if_memory(error: BaseException, what: str) -> None:
    """An InputError if ``error`` says, in numpy's words or torch's, that there is not enough memory."""
    if isinstance(error, MemoryError | OverflowError) or any(words in str(error) for words in TOO_LARGE):
        raise InputError(f"not enough memory for {what}: expected smaller sizes.") from None
