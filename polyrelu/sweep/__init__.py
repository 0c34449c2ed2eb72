"""Many settings of one function, here or on a cluster: one file per result, nothing lost, nothing done twice.

sweep = Sweep.grid("polyrelu.workflows.experiments:mixture", {"p": [1, 3], "seed": [0, 1, 2]}, {"dim": 200})
for record in run_sweep(sweep, "out/sweep", workers=2):
    print(record.settings["p"], record.result)
"""

from polyrelu.sweep.engines.ray_address import probe_address
from polyrelu.sweep.function import find_function, source_version, sweepable
from polyrelu.sweep.record import Record, digest, encode
from polyrelu.sweep.run import run_sweep
from polyrelu.sweep.status import SweepStatus, export, read_records, status
from polyrelu.sweep.sweep import Sweep

__all__ = [
    "Record",
    "Sweep",
    "SweepStatus",
    "digest",
    "encode",
    "export",
    "find_function",
    "probe_address",
    "read_records",
    "run_sweep",
    "source_version",
    "status",
    "sweepable",
]
