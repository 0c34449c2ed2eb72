"""Data with known structure: every set is one ``Dataset(X, y, cluster, centres, name)``.

This room knows nothing of nets or training. Recipes (``OrthonormalMixture`` and its relatives) are small frozen
records; ``recipe.sample(n, seed)`` gives the same rows for the same seed, on any machine and for any block size.
``read`` takes what a person types: a file, a name or a recipe.
"""

from polyrelu.data.dataset import Dataset
from polyrelu.data.rows import BLOCK, RowSource
from polyrelu.data.spec import read
from polyrelu.data.synthetic.mixture import OrthonormalMixture
from polyrelu.data.synthetic.recipe import parse_clusters
from polyrelu.data.synthetic.sphere import NearlyOrthogonalSphere
from polyrelu.data.synthetic.symmetric import SymmetricSeparable

__all__ = [
    "BLOCK",
    "Dataset",
    "NearlyOrthogonalSphere",
    "OrthonormalMixture",
    "RowSource",
    "SymmetricSeparable",
    "parse_clusters",
    "read",
]
