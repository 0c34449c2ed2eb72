"""Does this network fit these data?"""

from __future__ import annotations

from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet


def fits_data(net: PolyReLUNet, data: Dataset) -> None:
    """Same number of columns, and one logit for labels +-1 or one output per class."""
    require(data.dim == net.dim, "data", f"{data.dim} columns", f"{net.dim}, the dim of the network")
    outputs = 1 if data.binary else data.classes
    require(net.outputs == outputs, "net.outputs", net.outputs, f"{outputs}, for the labels of {data.name}")
