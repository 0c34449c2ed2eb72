"""Tables in files: .csv, .parquet, .npz, .npy, .safetensors."""

from polyrelu.data.tables.columns import InputSchema
from polyrelu.data.tables.table import TABLE_SUFFIXES, Table, open_table, read_table_blocks, read_table_file

__all__ = [
    "TABLE_SUFFIXES",
    "InputSchema",
    "Table",
    "open_table",
    "read_table_blocks",
    "read_table_file",
]
