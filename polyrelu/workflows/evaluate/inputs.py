"""What an evaluation is of: the net, the data, whether they belong together, and what makes both what they are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from polyrelu._version import __version__
from polyrelu.data import Dataset, InputSchema, class_indices, read, read_table
from polyrelu.errors import InputError, require
from polyrelu.nets import Net, classes_from_json, load, load_about, load_reference
from polyrelu.workflows.evaluate.settings import EvaluationSettings
from polyrelu.workflows.flow.settings import NET_FILE


def read_net(text: str, p: float | None = None) -> Net:
    """The net in a file written by polyrelu, or in a folder written by ``polyrelu flow``.

    With ``p`` the net of that power in a checkpoint of the published code (`polyrelu.nets.load_reference`).
    """
    path = Path(text)
    if p is None and path.is_dir():
        inside = path / NET_FILE
        require(inside.is_file(), "net", text, f"a file, or a folder with a {NET_FILE} in it, as polyrelu flow writes")
        path = inside
    name = "net" if p is None else "reference"
    wanted = "an existing file written by polyrelu, or a folder of polyrelu flow"
    require(path.is_file(), name, text, wanted if p is None else "an existing checkpoint of the published code (.pt)")
    try:
        return load(path) if p is None else load_reference(path, p)
    except InputError as error:
        published = p is None and path.suffix in (".pt", ".pth")
        hint = " For a checkpoint of the published code say --reference FILE --p P." if published else ""
        raise InputError(str(error).replace("path=", f"{name}=", 1) + hint) from None


def read_points(net: Net, settings: EvaluationSettings) -> Dataset:
    """The data; beside a head of ``polyrelu fit`` with columns as it takes them and its classes as the net has them.

    -1 and +1 (the second class) for one logit, else 0..C-1 in the order of the classes; labels may be numbers or text.
    """
    file = Path(settings.net)
    said = load_about(file) if settings.p is None and file.is_file() else {}
    if "classes" not in said:
        return read(settings.data)
    classes = classes_from_json(said, file)
    require(len(classes) == max(2, net.outputs), "net", file, f"{max(2, net.outputs)} classes, it names {len(classes)}")
    takes = InputSchema.from_json(said, file, net.dim)
    table = read_table(settings.data, takes=takes)
    if table.y is None:
        raise InputError(f"data={settings.data}: has no labels: expected classes of the head, such as {classes[0]}.")
    place = class_indices(table.y, classes)
    if (place < 0).any():
        row = int((place < 0).argmax())
        shown = ", ".join(str(one) for one in classes[:6].tolist()) + ", ..." * (len(classes) > 6)
        raise InputError(
            f"data={settings.data}: data row {row + 1} has the label {table.y[row]}: expected a class of the head "
            f"{settings.net}, which are {shown}."
        )
    y = torch.from_numpy(place if net.outputs > 1 else 2.0 * place - 1)
    return Dataset(table.X, y, table.extra.get("cluster"), table.extra.get("centres"), name=table.name)


def fitted(net: Net, data: Dataset, settings: EvaluationSettings) -> tuple[Net, Dataset]:
    """Net and data in one dtype, after checking that they belong together.

    Where the types differ both become float64: every float32 number is one, so neither weights nor points change.
    """
    if net.dim != data.dim:
        raise InputError(f"data={settings.data}: has {data.dim} columns, but the net {settings.net} takes {net.dim}.")
    if data.binary != (net.outputs == 1) or data.classes > max(2, net.outputs):
        has = "labels +1 and -1" if data.binary else f"classes 0..{data.classes - 1}"
        logits, takes = f"{net.outputs} logits", f"classes 0..{net.outputs - 1}"
        if net.outputs == 1:
            logits, takes = "one logit", "labels +1 and -1"
        raise InputError(f"data={settings.data}: has {has}, but the net {settings.net} has {logits}: expected {takes}.")
    if net.dtype != data.dtype:
        return net.to(torch.float64), data.to(torch.float64)
    return net, data


def identity_of(net: Net, data: Dataset, settings: EvaluationSettings, norm: float) -> dict[str, Any]:
    """All that the numbers of a point depend on."""
    tensors = hashlib.sha256(f"{type(net).__name__} {json.dumps(net.config(), sort_keys=True)}".encode())
    for name, tensor in net.state_dict().items():
        tensors.update(name.encode() + _bytes(tensor))
    rows = hashlib.sha256(f"{len(data)} {data.dim} {data.dtype}".encode() + _bytes(data.y))
    for _, block in data.blocks():
        rows.update(_bytes(block))
    return {
        "net": tensors.hexdigest(),
        "data": rows.hexdigest(),
        "norm": f"{norm:g}",
        "tol": settings.tol,
        "budget-nodes": settings.nodes,
        "budget-seconds": settings.seconds,
        "seed": settings.seed,
        "version": __version__,
    }


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
