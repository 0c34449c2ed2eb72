"""Nets: the polynomial-ReLU network, the ideal classifiers, the baselines, and their files."""

from polyrelu.nets.base import Net
from polyrelu.nets.baselines import MLP, LeakyReLUNet, LogisticRegression, PlainPolyNet, TanhNet
from polyrelu.nets.cnn import SmallCNN
from polyrelu.nets.feature_averaging import FixedOutputNet, GroupedNet
from polyrelu.nets.ideal import AverageClassifier, BayesClassifier, CentreClassifier, NearestCentre, RobustClassifier
from polyrelu.nets.initialisation import INITIALISATIONS
from polyrelu.nets.polar import Polar
from polyrelu.nets.polyrelu_net import PolyReLUNet
from polyrelu.nets.readout import ReadOut
from polyrelu.nets.relu_power import relu_power
from polyrelu.nets.resnet import ResNet
from polyrelu.nets.store import KINDS, load, load_reference, save

__all__ = [
    "INITIALISATIONS",
    "KINDS",
    "MLP",
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
    "load",
    "load_reference",
    "relu_power",
    "save",
]
