"""Nets for other programs: ONNX and torch.export, each checked against the net itself before the file is kept.

    f(x) = sum_j c_j relu(<x - m, w_j> / |w_j|)^p [ |x - m| / |x - m|^p ] + b,   c_j = v_j |w_j|

and, for a `ReadOut`, the maximum over the sub-classes of each class.
"""

from __future__ import annotations

import copy
import importlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.files import write_atomically
from polyrelu.nets.base import Net
from polyrelu.nets.polyrelu_net import PolyReLUNet
from polyrelu.nets.readout import ReadOut, inner_net

OPSET, IR = 17, 8  # understood by every ONNX runtime since 2022
ROWS = 256  # random rows on which an export is compared with the net
ARITHMETIC = (
    "{0}. Radii proven for this net with arithmetic={0!r} (as PolyReLUClassifier.certify gives them) hold for this "
    "model as executed by ONNX Runtime's CPUExecutionProvider with default options; no other provider is covered."
)
ROUNDING = 64  # rounding errors by which two orders of summation may differ


@checked
def to_torch_export(net: Net, path: str | Path) -> Path:
    """Write ``net`` as a program of torch.export (.pt2) for any number of rows, bit-equal to the net.

    ``torch.export.load(path).module()(X)`` runs it where polyrelu is not installed. X (n, dim) in the net's dtype.
    """
    own = _exportable(net)
    size = torch.export.Dim("n", min=1)
    with torch.no_grad():
        traced = _Best(own) if isinstance(own, ReadOut) else own
        program = torch.export.export(traced, (_rows(own, 2),), dynamic_shapes=({0: size},))

    def write(temporary: Path) -> None:
        packed = io.BytesIO()  # torch ends the process where its own file cannot be written
        torch.export.save(program, packed)
        temporary.write_bytes(packed.getvalue())
        again = torch.export.load(temporary).module()
        for count in (1, 7, ROWS):
            X = _rows(own, count)
            with torch.no_grad():
                same = torch.equal(again(X), own(X))
            require(same, "net", type(net).__name__, "an export that gives the same bits, please report this")

    return _write(path, ".pt2", write)


@checked
def to_onnx(net: Net, path: str | Path, *, about: Mapping[str, Any] | None = None) -> Path:
    """Write ``net`` as an ONNX model: input ``X`` (n, dim), output ``logits`` (n,) or (n, C), for any n.

    The model is run by onnxruntime on random rows and must agree up to rounding, |difference| <= 64 eps
    (sum_j |c_j| (z_j^p + p z_j^(p-1) |x|) + |b|), z_j = relu(<x, w_j>/|w_j|), and decide alike wherever the margin is
    above that. ``about`` (classes, names of the inputs) is kept as the metadata entry "polyrelu"; the entry
    "arithmetic" says which proven radii hold for the model as executed. Needs ``pip install "polyrelu[export]"``.
    """
    own = _exportable(net)
    onnx, runtime = _package("onnx"), _package("onnxruntime")
    model = _model(own, onnx, about)

    def write(temporary: Path) -> None:
        onnx.save(model, str(temporary))
        session = runtime.InferenceSession(str(temporary), providers=["CPUExecutionProvider"])
        for count in (1, ROWS):
            X = _rows(own, count)
            _require_close(own, X, torch.from_numpy(session.run(None, {"X": X.numpy()})[0]))

    return _write(path, ".onnx", write)


def _exportable(net: Net) -> PolyReLUNet | ReadOut:
    if not isinstance(net, (PolyReLUNet, ReadOut)):
        raise InputError(f"net={type(net).__name__}: expected a PolyReLUNet or a ReadOut; others are not exported.")
    return copy.deepcopy(net).cpu().eval()


def _rows(net: PolyReLUNet | ReadOut, count: int) -> Tensor:
    """Random rows around the centre, .01 to 100 times as far from it as it is from 0 (1 at least)."""
    inner = inner_net(net)
    source = torch.Generator().manual_seed(0)
    X = torch.randn(count, net.dim, generator=source, dtype=torch.float64)
    length = 1.0 if inner.centre is None else max(float(inner.centre.double().norm()), 1.0)
    X = X / X.norm(dim=1, keepdim=True) * length * 10 ** (4 * torch.rand(count, 1, generator=source) - 2)
    rows: Tensor = X if inner.centre is None else X + inner.centre.double()
    return rows.to(net.dtype)


def _require_close(net: PolyReLUNet | ReadOut, X: Tensor, found: Tensor) -> None:
    with torch.no_grad():
        wanted, allowed = net(X), ROUNDING * torch.finfo(net.dtype).eps * _sensitivity(net, X)
    same = wanted.shape == found.shape and wanted.dtype == found.dtype
    require(same, "net", type(net).__name__, "an export of the same shape and type, please report this")
    finite = wanted.reshape(len(X), net.outputs).isfinite().all(1)  # elsewhere the net itself overflows
    wanted, found, allowed = wanted[finite], found[finite], allowed[finite]
    close = bool(((wanted - found).abs().reshape(len(wanted), net.outputs).amax(1) <= allowed).all())
    require(close, "net", type(net).__name__, "an export equal up to rounding, please report this")
    if wanted.ndim == 1:
        clear, alike = wanted.abs() > allowed, (wanted > 0) == (found > 0)
    else:
        best = wanted.topk(2, dim=1).values
        clear, alike = best[:, 0] - best[:, 1] > 2 * allowed, wanted.argmax(1) == found.argmax(1)
    require(bool((alike | ~clear).all()), "net", type(net).__name__, "an export that decides alike, please report this")


def _sensitivity(net: PolyReLUNet | ReadOut, X: Tensor) -> Tensor:
    """How much the largest logit of each row moves for a relative change of everything in it, in float64.

    sum_j |c_j| (z_j^p + p z_j^(p-1) |x|) + |b|: what is summed, and what an error of |x| in the products makes of it.
    """
    inner = copy.deepcopy(inner_net(net)).double()
    x = inner.preprocess(X.double())
    length = x.norm(dim=1, keepdim=True)
    z = (x @ inner.directions().T).relu()
    terms = (z**inner.p + inner.p * z ** (inner.p - 1) * length) @ inner.contributions()
    bias = x.new_zeros(()) if inner.bias is None else inner.bias.abs().max()
    return torch.add(terms, bias)


@final
class _Best(nn.Module):
    """A ReadOut in operations that export for any number of rows; the same maxima, hence the same bits."""

    def __init__(self, readout: ReadOut) -> None:
        super().__init__()
        self.net = readout.net
        self.own = [(readout.class_of == one).nonzero()[:, 0].tolist() for one in range(readout.outputs)]

    def forward(self, X: Tensor) -> Tensor:
        logits = self.net(X)
        return torch.stack([logits[:, own].amax(dim=1) for own in self.own], dim=1)


@final
class _Graph:
    """Nodes and constants of an ONNX graph, named as they come."""

    def __init__(self, onnx: Any, dtype: torch.dtype) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.kind: Any = np.float32 if dtype == torch.float32 else np.float64

    def constant(self, value: Any, kind: Any = None) -> str:
        name = f"c{len(self.constants)}"
        array: NDArray[Any] = np.asarray(value.detach().numpy() if isinstance(value, Tensor) else value)
        self.constants.append(self.onnx.numpy_helper.from_array(array.astype(kind or self.kind), name))
        return name

    def node(self, operator: str, *inputs: str, to: str | None = None, to_type: Any = None, **attributes: Any) -> str:
        if to_type is not None:  # ONNX calls this "to" as well
            attributes["to"] = to_type
        name = to or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def _model(net: PolyReLUNet | ReadOut, onnx: Any, about: Mapping[str, Any] | None) -> Any:
    graph = _Graph(onnx, net.dtype)
    last = _logits(graph, inner_net(net))
    if isinstance(net, ReadOut):
        last = _read_out(graph, last, net.class_of.tolist())
    if net.outputs == 1:
        last = graph.node("Squeeze", last, graph.constant([1], np.int64))
    graph.node("Identity", last, to="logits")
    helper, kind = onnx.helper, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(graph.kind))
    takes = helper.make_tensor_value_info("X", kind, ["n", net.dim])
    gives = helper.make_tensor_value_info("logits", kind, ["n"] if net.outputs == 1 else ["n", net.outputs])
    built = helper.make_graph(graph.nodes, "polyrelu", [takes], [gives], graph.constants)
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    said = {"arithmetic": ARITHMETIC.format(str(net.dtype).removeprefix("torch."))}
    helper.set_model_props(model, said | ({"polyrelu": json.dumps(dict(about))} if about else {}))
    onnx.checker.check_model(model)
    return model


def _logits(graph: _Graph, net: PolyReLUNet) -> str:
    """The steps of `PolyReLUNet.forward`, one node each."""
    X, length = "X", None
    if net.centre is not None:
        X = graph.node("Sub", X, graph.constant(net.centre))
    if net.normalise_input and net.p > 1:
        wide, own = graph.onnx.TensorProto.DOUBLE, graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(graph.kind))
        zero, one = (graph.constant(number, np.float64) for number in (0.0, 1.0))
        exact = graph.node("Cast", X, to_type=wide)
        largest = graph.node("ReduceMax", graph.node("Abs", exact), axes=[1], keepdims=1)
        largest = graph.node("Where", graph.node("Equal", largest, zero), one, largest)
        exact = graph.node("Div", exact, largest)
        squares = graph.node("ReduceSum", graph.node("Mul", exact, exact), graph.constant([1], np.int64), keepdims=1)
        length = graph.node("Cast", graph.node("Mul", graph.node("Sqrt", squares), largest), to_type=own)
        at_centre = graph.node("Equal", length, graph.constant(0.0))
        X = graph.node("Div", X, graph.node("Where", at_centre, graph.constant(1.0), length))
    r = torch.linalg.vector_norm(net.weight.detach(), dim=1, dtype=torch.float64).to(net.dtype)
    z = graph.node("MatMul", X, graph.constant(net.weight.detach().T))
    if net.width == 1:  # onnxruntime would merge a division by one number into the product, rounded to float32
        z = graph.node("Relu", z)
    z = graph.node("Relu", graph.node("Div", z, graph.constant(torch.where(r > 0, r, 1.0))))
    hidden = _power(graph, z, net.p)
    coefficients = (net.output.detach().double() * r.double() * (2 * net.log_scale).exp()).to(net.dtype)
    logits = graph.node("MatMul", hidden, graph.constant(coefficients.T))
    if length is not None:
        logits = graph.node("Mul", logits, length)
    return logits if net.bias is None else graph.node("Add", logits, graph.constant(net.bias))


def _power(graph: _Graph, z: str, p: float) -> str:
    """z^p for z >= 0, by products where p is 1, 2, 3 or 4."""
    if p == 1:
        return z
    if p in (2, 3, 4):
        square = graph.node("Mul", z, z)
        return square if p == 2 else graph.node("Mul", square, z if p == 3 else square)
    return graph.node("Pow", z, graph.constant(p))


def _read_out(graph: _Graph, logits: str, of: Sequence[int]) -> str:
    best = []
    for one in range(max(of) + 1):
        own = graph.constant([s for s, c in enumerate(of) if c == one], np.int64)
        best.append(graph.node("ReduceMax", graph.node("Gather", logits, own, axis=1), axes=[1], keepdims=1))
    return graph.node("Concat", *best, axis=1)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f'onnx={name} is missing: expected what writes and checks .onnx; pip install "polyrelu[export]".'
        ) from None


def _write(path: str | Path, suffix: str, write: Any) -> Path:
    target = Path(path)
    require(target.suffix == suffix, "path", path, f"a name that ends in {suffix}")
    require(target.parent.is_dir(), "path", path, "a name in an existing folder")
    return write_atomically(target, write)
