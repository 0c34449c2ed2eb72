"""Checkpoints in the layout of the published code."""

from __future__ import annotations

import math
import os
import pickle

import pytest
import torch
from torch import Tensor

from polyrelu.errors import InputError
from polyrelu.nets import load_reference


def state(dtype: torch.dtype = torch.float64, **change) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    full = {
        "center": torch.rand(1, 6, generator=g, dtype=torch.float64),
        "prelulayer.W": torch.randn(6, 5, generator=g, dtype=torch.float64),
        "output_net.weight": torch.randn(3, 5, generator=g, dtype=torch.float64),
        "output_net.bias": torch.randn(3, generator=g, dtype=torch.float64),
    }
    full = {key: value.to(dtype) for key, value in full.items()} | change
    return {key: value for key, value in full.items() if value is not None}


def published(s: dict[str, Tensor], X: Tensor, p: float, normalise: bool) -> Tensor:
    """The reference forward, as described: powers of W's column norms and of |x - center|."""
    X, W = X - s["center"].reshape(1, -1), s["prelulayer.W"]
    hidden = (X @ W).relu() ** p / W.norm(dim=0) ** (p - 1)
    if normalise and p > 1:
        hidden = hidden / X.norm(dim=1, keepdim=True) ** (p - 1)
    return hidden @ s["output_net.weight"].T + s.get("output_net.bias", 0)


def write(tmp_path, content) -> str:
    torch.save(content, tmp_path / "net.pt")
    return str(tmp_path / "net.pt")


@pytest.mark.parametrize("p", [1, 2, 3, 4, 2.5])
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_function(p, normalise, dtype, tmp_path):
    s = state(dtype)
    net = load_reference(write(tmp_path, s), p, normalise_input=normalise)
    X = torch.randn(8, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    assert net.dtype == dtype and (net.dim, net.width, net.outputs) == (6, 5, 3)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(net(X), published(s, X, p, normalise), rtol=tolerance, atol=tolerance)


def test_wrapping_flat_centre_missing_bias_and_zero_centre(tmp_path):
    X = torch.randn(4, 6, dtype=torch.float64)
    s = state(center=torch.full((6,), 0.5, dtype=torch.float64), **{"output_net.bias": None})
    net = load_reference(write(tmp_path, {"state_dict": s, "params": {"p": 2, "h": 5}}), 2)
    assert net.bias is None and torch.equal(net.centre, s["center"])
    torch.testing.assert_close(net(X), published(s, X, 2, True))
    net = load_reference(write(tmp_path, state(center=torch.zeros(1, 6, dtype=torch.float64))), 2)
    assert net.centre is None
    one = state(**{"output_net.weight": torch.ones(1, 5).double(), "output_net.bias": torch.ones(1).double()})
    assert load_reference(write(tmp_path, one), 2)(X).shape == (4,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prelulayer.W": None}, "the key 'prelulayer.W', found"),
        ({"center": None}, "the key 'center', found"),
        ({"output_net.weight": None}, "the key 'output_net.weight', found"),
        ({"center": torch.zeros(1, 5)}, r"'center' of shape \(1, 6\), found \(1, 5\)"),
        ({"prelulayer.W": torch.ones(6, 4).double()}, r"'output_net.weight' of shape \(3, 4\), found \(3, 5\)"),
        ({"prelulayer.W": torch.ones(6, 4, 2).double()}, "'prelulayer.W' as a float32 or float64 matrix"),
        ({"prelulayer.W": torch.ones(6, 5, dtype=torch.int64)}, "'prelulayer.W' as a float32 or float64 matrix"),
        ({"prelulayer.W": 3.0}, "'prelulayer.W' as a float32 or float64 matrix"),
        ({"output_net.bias": torch.ones(4)}, r"'output_net.bias' of shape \(1, 3\), found \(1, 4\)"),
        ({"prelulayer.W": torch.full((6, 5), math.nan)}, "finite weights, 'prelulayer.W' holds NaN or inf"),
    ],
)
def test_each_thing_that_does_not_fit_is_named(change, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_reference(write(tmp_path, state(**change)), 2)


def test_bad_p_and_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"p=0\.5: expected a finite number >= 1"):
        load_reference(write(tmp_path, state()), 0.5)
    with pytest.raises(InputError, match="expected an existing file"):
        load_reference(tmp_path / "nothing.pt", 2)
    with pytest.raises(InputError, match="a state dict, found a list"):
        load_reference(write(tmp_path, [torch.ones(2)]), 2)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.8, 0.99])
def test_truncated_checkpoints_are_refused(share, tmp_path):
    path = write(tmp_path, state())
    data = (tmp_path / "net.pt").read_bytes()
    (tmp_path / "net.pt").write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=r"net\.pt: expected a torch checkpoint of tensors only"):
        load_reference(path, 2)


class Bomb:
    """A pickle that leaves a trace if anyone runs it."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (os.mkdir, (str(self.trace),))


def test_code_in_a_pickle_is_not_run(tmp_path):
    trace, path = tmp_path / "trace", tmp_path / "net.pt"
    write(tmp_path, {**state(), "extra": Bomb(trace)})
    with pytest.raises(InputError, match="expected a torch checkpoint of tensors only") as refused:
        load_reference(path, 2)
    assert "weights_only" not in str(refused.value)  # nor is anybody advised to run it
    path.write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(InputError, match="expected a torch checkpoint of tensors only"):
        load_reference(path, 2)
    path.write_bytes(b"<!DOCTYPE html>")
    with pytest.raises(InputError, match="expected a torch checkpoint of tensors only"):
        load_reference(path, 2)
    assert not trace.exists()
