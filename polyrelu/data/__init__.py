"""Data with known structure, tables and images: every set is one ``Dataset(X, y, cluster, centres, name)``.

Recipes (``OrthonormalMixture`` and its relatives) are frozen records; ``recipe.sample(n, seed)`` gives the same rows
for the same seed, on any machine and for any block size. ``read`` takes what a person types: a file, a name or a
recipe. Nothing here knows nets or training.
"""

from polyrelu.data.dataset import Dataset, class_numbers, split_part, split_rows
from polyrelu.data.read import class_indices, read, read_table
from polyrelu.data.relabel import relabel
from polyrelu.data.rows import BLOCK, Rows, RowSource, as_row_source, check_finite, is_memory_mapped, read_rows
from polyrelu.data.synthetic import NearlyOrthogonalSphere, OrthonormalMixture, SymmetricSeparable, parse_clusters
from polyrelu.data.tables.columns import InputSchema, Table
from polyrelu.data.tables.table import TABLE_SUFFIXES, read_table_blocks

__all__ = [
    "BLOCK",
    "TABLE_SUFFIXES",
    "Dataset",
    "InputSchema",
    "NearlyOrthogonalSphere",
    "OrthonormalMixture",
    "RowSource",
    "Rows",
    "SymmetricSeparable",
    "Table",
    "as_row_source",
    "check_finite",
    "class_indices",
    "class_numbers",
    "is_memory_mapped",
    "parse_clusters",
    "read",
    "read_rows",
    "read_table",
    "read_table_blocks",
    "relabel",
    "split_part",
    "split_rows",
]
