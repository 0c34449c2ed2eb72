"""What was learned: measurements on a net, a data set or a Trajectory, one subject a file (docs/ARCHITECTURE.md)."""

from polyrelu.bias.alignment import (
    ALIGNED_COSINE,
    Alignment,
    Balance,
    alignment,
    balance,
    dominant_neurons,
    weighted_quantiles,
)
from polyrelu.bias.alignment_field import alignment_field, alignment_speed, tangent_part
from polyrelu.bias.correlation import Correlation, correlation
from polyrelu.bias.decomposition import (
    CLASS_AVERAGES,
    MIXTURE,
    NO_OWN_COEFFICIENT,
    ONE_SUBCLASS,
    OUTSIDE_SPAN,
    SINGLE_CENTRES,
    Decomposition,
    Learned,
    decompose,
)
from polyrelu.bias.decoupling import Decoupling, decoupling
from polyrelu.bias.first_layer import Neurons, neurons_of
from polyrelu.bias.homogeneity import TRIAL_ROWS, Layer, UnitNormNet, layers, unit_norm_net
from polyrelu.bias.kkt import KKT, KKTCertificate, kkt
from polyrelu.bias.lipschitz import Lipschitz, lipschitz, lipschitz_radius
from polyrelu.bias.margins import (
    LARGEST_LOSS,
    MarginHistory,
    Margins,
    Monotone,
    margin_history,
    margins,
    monotone,
    smoothed_log_margin,
)
from polyrelu.bias.phases import Moment, Phases, alignment_index, loss_fall_index, median_alignment, phases
from polyrelu.bias.regions import Cones, Regions, class_regions, cones, regions
from polyrelu.bias.simplicity import Simplicity, odd_map, simplicity
from polyrelu.bias.spectrum import effective_neurons, feature_stable_rank, stable_rank, weight_stable_ranks
from polyrelu.bias.stationary_directions import StationaryDirections, stationary_directions
from polyrelu.bias.subclasses import Subclasses, estimate_subclasses, known_subclasses
from polyrelu.bias.svm import SVM, cosine_to_svm, svm_direction
from polyrelu.bias.universal import (
    UniversalRadii,
    class_sums,
    flip_radii,
    gradient_to_margin,
    steps_to_classes,
    universal,
)

__all__ = [
    "ALIGNED_COSINE",
    "CLASS_AVERAGES",
    "KKT",
    "LARGEST_LOSS",
    "MIXTURE",
    "NO_OWN_COEFFICIENT",
    "ONE_SUBCLASS",
    "OUTSIDE_SPAN",
    "SINGLE_CENTRES",
    "SVM",
    "TRIAL_ROWS",
    "Alignment",
    "Balance",
    "Cones",
    "Correlation",
    "Decomposition",
    "Decoupling",
    "KKTCertificate",
    "Layer",
    "Learned",
    "Lipschitz",
    "MarginHistory",
    "Margins",
    "Moment",
    "Monotone",
    "Neurons",
    "Phases",
    "Regions",
    "Simplicity",
    "StationaryDirections",
    "Subclasses",
    "UnitNormNet",
    "UniversalRadii",
    "alignment",
    "alignment_field",
    "alignment_index",
    "alignment_speed",
    "balance",
    "class_regions",
    "class_sums",
    "cones",
    "correlation",
    "cosine_to_svm",
    "decompose",
    "decoupling",
    "dominant_neurons",
    "effective_neurons",
    "estimate_subclasses",
    "feature_stable_rank",
    "flip_radii",
    "gradient_to_margin",
    "kkt",
    "known_subclasses",
    "layers",
    "lipschitz",
    "lipschitz_radius",
    "loss_fall_index",
    "margin_history",
    "margins",
    "median_alignment",
    "monotone",
    "neurons_of",
    "odd_map",
    "phases",
    "regions",
    "simplicity",
    "smoothed_log_margin",
    "stable_rank",
    "stationary_directions",
    "steps_to_classes",
    "svm_direction",
    "tangent_part",
    "unit_norm_net",
    "universal",
    "weight_stable_ranks",
    "weighted_quantiles",
]
