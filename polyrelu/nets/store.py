"""Nets in files: safetensors with the settings, and perhaps names of classes, beside the weights; no code is run."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.files import is_file, parse_json, write_atomically
from polyrelu.nets.base import Net
from polyrelu.nets.baselines import (
    MLP,
    FixedOutputNet,
    GroupedNet,
    LeakyReLUNet,
    LogisticRegression,
    PlainPolyNet,
    TanhNet,
)
from polyrelu.nets.convolutional import ResNet, SmallCNN
from polyrelu.nets.ideal import AverageClassifier, BayesClassifier, CentreClassifier, NearestCentre, RobustClassifier
from polyrelu.nets.polyrelu_net import PolyReLUNet
from polyrelu.nets.readout import ReadOut

FORMAT = "polyrelu-net"
VERSION = 1
HEAD_VERSION = 1  # of what a head keeps beside its net
LABEL_TYPES = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}
LABEL_WORDS = "whole numbers, floating numbers, booleans or text"
KINDS: dict[str, type[Net]] = {
    kind.__name__: kind
    for kind in (
        PolyReLUNet,
        ReadOut,
        AverageClassifier,
        CentreClassifier,
        BayesClassifier,
        NearestCentre,
        RobustClassifier,
        PlainPolyNet,
        TanhNet,
        LeakyReLUNet,
        LogisticRegression,
        MLP,
        FixedOutputNet,
        GroupedNet,
        SmallCNN,
        ResNet,
    )
}


def save(net: Net, path: str | Path, *, about: Mapping[str, Any] | None = None) -> Path:
    """Write ``net`` to ``path``, whole or not at all; `load` gives back an equal net of the same dtype.

    ``about``: whatever JSON can hold, kept beside the weights for `load_about`.
    """
    kind = type(net).__name__
    require(KINDS.get(kind) is type(net), "net", kind, f"one of {', '.join(KINDS)}")
    absent = any(tensor.is_meta for tensor in net.state_dict().values())
    require(not absent, "net", f"{kind} on the device meta", "a net that holds numbers")
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in net.state_dict().items()}
    _require_finite(tensors, "net", kind)
    metadata = {"format": FORMAT, "version": str(VERSION), "kind": kind, "config": json.dumps(net.config())}
    if about is not None:
        require(isinstance(about, Mapping), "about", type(about).__name__, "a table of what JSON can hold")
        metadata["about"] = json.dumps(dict(about))
    try:
        return write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata))
    except (OSError, SafetensorError) as error:  # the second is a full disk, in the words of the library below
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"path={path}: expected a file that can be written ({reason}).") from None


@checked
def load(path: str | Path) -> Net:
    """The net that `save` wrote to ``path``, on the CPU."""
    tensors, metadata = _read(path)
    require(metadata.get("format") == FORMAT, "path", path, "a net saved by polyrelu, this is another program's file")
    version = metadata.get("version", "")
    number = int(version) if re.fullmatch(r"[0-9]{1,9}", version) else 0
    require(number >= 1, "path", path, f"a format version, the file says {version!r}")
    if number > VERSION:
        raise InputError(
            f"path={path}: written by a newer polyrelu (format {version}, this one reads {VERSION}); upgrade polyrelu."
        )
    kind = metadata.get("kind", "")
    require(kind in KINDS, "path", path, f"one of {', '.join(KINDS)}, the file says {kind!r}")
    try:
        net = KINDS[kind].restore(parse_json(metadata["config"]), tensors)
    except (LookupError, TypeError, AttributeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"path={path}: its weights and settings do not fit {kind} ({error!s}).") from None
    _require_finite(net.state_dict(), "path", path)
    return net


@checked
def load_about(path: str | Path) -> dict[str, Any]:
    """What `save` got as ``about`` with the net in ``path``; {} if nothing. The weights are not read."""
    _require_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            found = parse_json((file.metadata() or {}).get("about", "{}"))
    except (SafetensorError, OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"path={path}: expected a net saved by polyrelu; it is damaged or foreign ({error})."
        ) from None
    require(isinstance(found, dict), "path", path, f"a net saved by polyrelu, which says about itself {found!r:.40}")
    return dict(found)


@checked
def load_reference(path: str | Path, p: float, *, normalise_input: bool = True) -> PolyReLUNet:
    """The net in a checkpoint of GitHub hanchmin/pReLU_ICML24 (Min & Vidal 2024).

        relu((x - center) @ W)^p / |W_col|^(p-1) / |x - center|^(p-1) @ output.T + bias

    Parameters
    ----------
    path : a ``.pt`` state dict, bare or under "state_dict": ``center`` [D] or [1, D], ``prelulayer.W`` [D, h],
        ``output_net.weight`` [C, h] and, if there is one, ``output_net.bias`` [C]. Read with ``weights_only=True``.
    p : the power, which the file does not hold
    normalise_input : the division by |x - center|^(p-1), on in the published runs on real data
    """
    state = _read_reference(path)
    center, W, V = (_matrix(path, state, key) for key in ("center", "prelulayer.W", "output_net.weight"))
    (dim, width), outputs = W.shape, len(V)
    _require_shape(path, "center", center, (1, dim))
    _require_shape(path, "output_net.weight", V, (outputs, width))
    bias = _matrix(path, state, "output_net.bias") if state.get("output_net.bias") is not None else None
    if bias is not None:
        _require_shape(path, "output_net.bias", bias, (1, outputs))
    net = PolyReLUNet(
        dim,
        width,
        p,
        outputs,
        init="zeros",
        centre=center[0] if center.any() else None,
        bias=bias is not None,
        normalise_input=normalise_input,
        dtype=W.dtype,
    )
    with torch.no_grad():
        net.weight.copy_(W.T)
        net.output.copy_(V)
        if net.bias is not None and bias is not None:
            net.bias.copy_(bias[0])
    return net


def _read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    _require_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError, ValueError, AttributeError, KeyError) as error:
        raise InputError(
            f"path={path}: expected a whole safetensors file; it is cut short or foreign ({error})."
        ) from None


def _read_reference(path: str | Path) -> dict[str, Any]:
    _require_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on protocols of pickles, none of which is run
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can raise anything; none of its code is run
        reason = str(error).strip().split("\n")[0]
        if isinstance(error, pickle.UnpicklingError) or not reason or "weights_only" in reason:
            reason = "it holds something else, or is damaged"  # torch then advises to run what is in the file
        raise InputError(f"path={path}: expected a torch checkpoint of tensors only ({reason}).") from None
    if isinstance(state, dict) and "state_dict" in state:
        state = state["state_dict"]
    require(isinstance(state, dict), "path", path, f"a state dict, found a {type(state).__name__}")
    return dict(state)


def _matrix(path: str | Path, state: dict[str, Any], key: str) -> Tensor:
    """``state[key]`` as a finite float matrix; a vector becomes one row."""
    require(key in state, "path", path, f"the key {key!r}, found {sorted(map(str, state))}")
    value = state[key]
    good = isinstance(value, Tensor) and value.dtype in (torch.float32, torch.float64)
    good = good and value.ndim in (1, 2) and value.numel() > 0
    good = good and value.layout == torch.strided and value.device.type == "cpu"
    good = good and value.numel() * value.itemsize <= value.untyped_storage().nbytes()  # strides can repeat numbers
    require(good, "path", path, f"{key!r} as a float32 or float64 matrix")
    _require_finite({key: value}, "path", path)
    return value.reshape(1, -1) if value.ndim == 1 else value  # type: ignore[no-any-return]


def _require_shape(path: str | Path, key: str, value: Tensor, shape: tuple[int, int]) -> None:
    require(tuple(value.shape) == shape, "path", path, f"{key!r} of shape {shape}, found {tuple(value.shape)}")


def _require_file(path: str | Path) -> None:
    require(is_file(path), "path", str(path)[:200], "an existing file")


def _require_finite(tensors: dict[str, Tensor], argument: str, given: object) -> None:
    for name, tensor in tensors.items():
        require(bool(tensor.isfinite().all()), argument, given, f"finite weights, {name!r} holds NaN or inf")


def classes_to_json(classes: npt.NDArray[Any], name: str = "classes") -> dict[str, Any]:
    """{name: values, name_kind: "int", "float", "bool" or "str", name_dtype: as numpy writes it}."""
    text = classes.dtype.kind == "O" and all(isinstance(one, str) for one in classes)
    kind = "str" if text else LABEL_TYPES.get(classes.dtype.kind)
    allowed = f"{LABEL_WORDS}; others cannot be kept in a file"
    require(kind is not None, name, f"labels of type {classes.dtype}", allowed)
    return {name: classes.tolist(), f"{name}_kind": kind, f"{name}_dtype": classes.dtype.str}


def classes_from_json(about: Mapping[str, Any], path: object, name: str = "classes") -> npt.NDArray[Any]:
    """The inverse of `classes_to_json`, for what was read from ``path``."""
    values, kind, dtype = (about.get(key) for key in (name, f"{name}_kind", f"{name}_dtype"))
    whole = isinstance(values, list) and isinstance(kind, str) and isinstance(dtype, str)
    require(whole, "path", path, f"a head saved by PolyReLUClassifier.save, this file names no {name}")
    good = dtype == "|O" and kind == "str" if dtype[1:2] == "O" else LABEL_TYPES.get(dtype[1:2]) == kind  # type: ignore[index]
    good = good and all(isinstance(one, (str, bool, int, float)) for one in values)  # type: ignore[union-attr]
    require(good, "path", path, f"{name} that are {LABEL_WORDS}, the file says {kind} in {dtype}")
    try:
        found = np.array(values, dtype=dtype)
    except (ValueError, OverflowError, TypeError):
        found = np.empty(0)
    good = found.shape == (len(values),) and found.tolist() == values and len(found) > 0  # type: ignore[arg-type]
    require(good, "path", path, f"{name} that fit the type {dtype}, the file has others")
    return found
