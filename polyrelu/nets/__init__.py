"""Nets: the polynomial-ReLU network, the ideal classifiers, the baselines, and their files."""

from polyrelu.nets.base import Net, relu_power
from polyrelu.nets.baselines import (
    MLP,
    READOUTS,
    FixedOutputNet,
    GroupedNet,
    LeakyReLUNet,
    LogisticRegression,
    PlainPolyNet,
    TanhNet,
    TwoLayer,
)
from polyrelu.nets.convolutional import ResNet, SmallCNN
from polyrelu.nets.export import to_onnx, to_torch_export
from polyrelu.nets.ideal import (
    AverageClassifier,
    BayesClassifier,
    CentreClassifier,
    NearestCentre,
    RobustClassifier,
    as_polyrelu_net,
    exact_sums,
)
from polyrelu.nets.initialisation import INITIALISATIONS
from polyrelu.nets.polar import Polar, orthonormal_basis, polar_form, unit_rows
from polyrelu.nets.polyrelu_net import PolyReLUNet, as_float64
from polyrelu.nets.readout import ReadOut, inner_net, logit_classes
from polyrelu.nets.store import (
    HEAD_VERSION,
    KINDS,
    classes_from_json,
    classes_to_json,
    load,
    load_about,
    load_reference,
    save,
)

__all__ = [
    "HEAD_VERSION",
    "INITIALISATIONS",
    "KINDS",
    "MLP",
    "READOUTS",
    "AverageClassifier",
    "BayesClassifier",
    "CentreClassifier",
    "FixedOutputNet",
    "GroupedNet",
    "LeakyReLUNet",
    "LogisticRegression",
    "NearestCentre",
    "Net",
    "PlainPolyNet",
    "Polar",
    "PolyReLUNet",
    "ReadOut",
    "ResNet",
    "RobustClassifier",
    "SmallCNN",
    "TanhNet",
    "TwoLayer",
    "as_float64",
    "as_polyrelu_net",
    "classes_from_json",
    "classes_to_json",
    "exact_sums",
    "inner_net",
    "load",
    "load_about",
    "load_reference",
    "logit_classes",
    "orthonormal_basis",
    "polar_form",
    "relu_power",
    "save",
    "to_onnx",
    "to_torch_export",
    "unit_rows",
]
