"""Recipes for data with known structure: mixtures, spheres, mirrored pairs."""

from polyrelu.data.synthetic.mixture import OrthonormalMixture
from polyrelu.data.synthetic.recipe import parse_clusters
from polyrelu.data.synthetic.sphere import NearlyOrthogonalSphere
from polyrelu.data.synthetic.symmetric import REACH, SymmetricSeparable

__all__ = [
    "REACH",
    "NearlyOrthogonalSphere",
    "OrthonormalMixture",
    "SymmetricSeparable",
    "parse_clusters",
]
