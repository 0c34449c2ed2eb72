"""`polyrelu export`: a net for programs that do not have polyrelu."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyrelu.cli.options import plain_errors
from polyrelu.errors import require

EPILOG = (
    "Example: polyrelu export head.safetensors -o head.onnx\n\n"
    "and: polyrelu export head.safetensors -o head.pt2\n\n"
    "Exit status: 0 done, 2 bad input or an export that is not equal, 130 interrupted."
)
SUFFIXES = (".onnx", ".pt2")


def export(
    net: Annotated[
        str, typer.Argument(help="A head of polyrelu fit, or a PolyReLUNet saved by polyrelu.", metavar="NET")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The file to write: .onnx (ONNX) or .pt2 (torch.export).",
            metavar="FILE",
            show_default=False,
        ),
    ],
) -> None:
    """Write NET as an ONNX model or a torch.export program, for any number of rows; kept only if its output is equal.

    Rows go in (X, as the head was fitted on, in its floating type) and logits come out: one, positive for the second
    class, or one for each class. Compared with NET on random rows: .pt2 to the last bit, .onnx up to rounding.
    """
    with plain_errors("use a smaller net"):
        require(out.suffix in SUFFIXES, "out", out, f"a name that ends in {' or '.join(SUFFIXES)}")
        from polyrelu.files import output_folder
        from polyrelu.nets import load_about, to_onnx, to_torch_export
        from polyrelu.workflows import read_net

        own = read_net(net)
        said = load_about(net) if Path(net).is_file() else {}
        output_folder(out.parent)
        shape = "(n,)" if own.outputs == 1 else f"(n, {own.outputs})"
        if out.suffix == ".onnx":
            to_onnx(own, out, about={key: said[key] for key in ("classes", "features") if key in said})
        else:
            to_torch_export(own, out)
        equal = "up to rounding" if out.suffix == ".onnx" else "to the last bit"
        typer.echo(f"polyrelu: {out} maps X (n, {own.dim}) to logits {shape}, equal {equal}", err=True)
        typer.echo(out)
