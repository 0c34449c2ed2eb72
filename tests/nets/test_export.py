"""Exports: other programs compute the same."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import polyrelu
from polyrelu.cli import application as cli
from polyrelu.errors import InputError
from polyrelu.nets import LogisticRegression, PolyReLUNet, ReadOut
from polyrelu.nets.export import to_onnx, to_torch_export


def net_of(p, outputs=1, *, dtype=torch.float32, whole=True, readout=False, scale=1.0):
    """With everything a net can have, or as plain as it can be."""
    more = {"centre": torch.linspace(-1, 2, 7), "bias": True, "normalise_input": True} if whole else {}
    net = PolyReLUNet(7, 20, p, outputs, init="gaussian", scale=scale, seed=3, dtype=dtype, **more)
    if net.bias is not None:
        net.bias.data += 0.3
    return ReadOut(net, [0, 1, 1, 0]) if readout else net


def rows(net, count, seed=5):
    X = 2 * torch.randn(count, net.dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return X.to(net.dtype)


def run_onnx(path, X):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"X": X.numpy()})[0])


CASES = [
    *({"p": p, "whole": whole} for p in (1, 2, 3, 4, 2.5) for whole in (True, False)),
    {"p": 3, "outputs": 3},
    {"p": 1.3, "outputs": 3, "dtype": torch.float64},
    {"p": 3, "outputs": 4, "readout": True},
    {"p": 2, "outputs": 4, "readout": True, "dtype": torch.float64, "whole": False},
    {"p": 3, "scale": 1e-30},
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_onnx_agrees_up_to_rounding_for_any_number_of_rows(tmp_path, case):
    pytest.importorskip("onnx")
    net = net_of(**case)
    path = to_onnx(net, tmp_path / "net.onnx")
    for count in (1, 2, 33):
        X = rows(net, count)
        found, wanted = run_onnx(path, X), net(X).detach()
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        size = 100 * torch.finfo(net.dtype).eps * (wanted.abs().max() + (1 if case.get("scale") is None else 0))
        assert (found - wanted).abs().max() <= size
        decided = (found > 0, wanted > 0) if net.outputs == 1 else (found.argmax(1), wanted.argmax(1))
        assert torch.equal(*decided)


@pytest.mark.parametrize("p", [1, 2, 2.5])
@pytest.mark.parametrize("dim", [1, 5])
@pytest.mark.parametrize("outputs", [1, 3])
def test_one_neuron_in_float64_is_not_rounded_to_float32(tmp_path, p, dim, outputs):
    # onnxruntime merges a product and a division by one number, as a factor that it keeps in float32
    pytest.importorskip("onnx")
    net = PolyReLUNet(dim, 1, p, outputs, seed=1, dtype=torch.float64)
    X = rows(net, 50)
    wanted = net(X).detach()
    found = run_onnx(to_onnx(net, tmp_path / "net.onnx"), X)
    assert (found - wanted).abs().max() <= 1e-14 * wanted.abs().max()


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("far", [0, 1e3])
def test_a_net_that_overflows_on_rows_of_the_comparison_is_exported(tmp_path, outputs, far):
    # |x|^50 is beyond float32 for many rows; with a centre 1e3 from zero for nearly all
    pytest.importorskip("onnx")
    centre = torch.eye(20)[0] * far
    net = PolyReLUNet(20, 3, 50, outputs, seed=1, centre=centre)
    assert not net(centre + 30 * net.directions().detach()[:1]).isfinite().all()
    X = centre + 0.2 * rows(net, 20)
    found, wanted = run_onnx(to_onnx(net, tmp_path / "net.onnx"), X), net(X).detach()
    assert wanted.isfinite().all()
    assert wanted.any()
    assert (found - wanted).abs().max() <= 1e-4 * wanted.abs().max()


def test_rows_whose_squares_underflow_go_through_onnx(tmp_path):
    pytest.importorskip("onnx")
    net = PolyReLUNet(5, 4, 3, seed=1, dtype=torch.float64, normalise_input=True)
    X = rows(net, 20)
    wanted = net(X).detach()  # of degree 1
    found = run_onnx(to_onnx(net, tmp_path / "net.onnx"), 1e-170 * X)
    for small in (found, net(1e-170 * X).detach()):
        assert (small * 1e170 - wanted).abs().max() <= 1e-14 * wanted.abs().max()


@pytest.mark.slow
def test_a_torch_export_on_a_full_disk_is_an_error_and_leaves_nothing(tmp_path):
    code = (
        "import resource, signal, sys, torch\nfrom polyrelu.nets import PolyReLUNet\n"
        "from polyrelu.nets.export import to_torch_export\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    to_torch_export(PolyReLUNet(5, 4), sys.argv[1])\n"
        "except OSError as error:\n    print(error.filename, error.strerror)\n"
    )
    target = tmp_path / "net.pt2"
    done = subprocess.run([sys.executable, "-c", code, target], capture_output=True, text=True)
    assert done.stdout == f"{target} File too large\n", done.stderr
    assert not list(tmp_path.iterdir())


def test_the_centre_itself_goes_through_onnx(tmp_path):
    pytest.importorskip("onnx")
    net = net_of(3)
    X = net.centre[None].clone()  # |x - c| = 0
    assert torch.equal(run_onnx(to_onnx(net, tmp_path / "net.onnx"), X), net(X).detach())


def test_onnx_keeps_what_is_said_about_the_net(tmp_path):
    onnx = pytest.importorskip("onnx")
    path = to_onnx(net_of(3), tmp_path / "net.onnx", about={"classes": ["cat", "dog"]})
    properties = {one.key: one.value for one in onnx.load(str(path)).metadata_props}
    assert json.loads(properties["polyrelu"]) == {"classes": ["cat", "dog"]}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_onnx_says_in_which_arithmetic_radii_hold_for_it(tmp_path, dtype):
    onnx = pytest.importorskip("onnx")
    path = to_onnx(net_of(3, dtype=dtype), tmp_path / "net.onnx")
    properties = {one.key: one.value for one in onnx.load(str(path)).metadata_props}
    name = str(dtype).removeprefix("torch.")
    assert properties["arithmetic"].startswith(f"{name}. Radii proven for this net with arithmetic='{name}'")


def test_an_export_that_differs_is_not_kept(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setattr("polyrelu.nets.export._power", lambda graph, z, p: z)
    with pytest.raises(InputError, match="equal up to rounding"):
        to_onnx(net_of(3), tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [{"p": 3}, {"p": 2.5, "outputs": 3, "dtype": torch.float64, "whole": False}, CASES[-3]],
    ids=str,
)
def test_a_torch_export_is_bit_equal_once_loaded(tmp_path, case):
    net = net_of(**case)
    again = torch.export.load(to_torch_export(net, tmp_path / "net.pt2")).module()
    for count in (1, 2, 50):
        X = rows(net, count)
        assert torch.equal(again(X), net(X))


def test_what_is_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="LogisticRegression: expected a PolyReLUNet or a ReadOut"):
        to_torch_export(LogisticRegression(3), tmp_path / "net.pt2")
    with pytest.raises(InputError, match=r"ends in \.pt2"):
        to_torch_export(net_of(3), tmp_path / "net.pt")
    with pytest.raises(InputError, match="existing folder"):
        to_torch_export(net_of(3), tmp_path / "none" / "net.pt2")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"polyrelu\[export\]"):
        to_onnx(net_of(3), tmp_path / "net.onnx")


def test_the_command(tmp_path):
    pytest.importorskip("onnx")
    net = net_of(3, 3)
    file = polyrelu.save(net, tmp_path / "net.safetensors", about={"classes": [3, 5, 8], "features": None})
    result = CliRunner().invoke(cli.app, ["export", str(file), "-o", str(tmp_path / "new" / "net.onnx")])
    assert result.exit_code == 0, result.stderr
    assert "maps X (n, 7) to logits (n, 3), equal up to rounding" in result.stderr
    X = rows(net, 5)
    assert np.allclose(run_onnx(tmp_path / "new" / "net.onnx", X), net(X).detach(), rtol=1e-4, atol=1e-5)
    for words, message in (
        ((file, "-o", tmp_path / "net.txt"), "ends in .onnx or .pt2"),
        ((tmp_path / "none.safetensors", "-o", tmp_path / "net.onnx"), "an existing file"),
    ):
        result = CliRunner().invoke(cli.app, ["export", *map(str, words)])
        assert result.exit_code == 2
        assert message in result.stderr
