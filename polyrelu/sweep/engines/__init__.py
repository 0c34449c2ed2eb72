"""Where the settings of a sweep run: worker processes on this machine, or a Ray cluster."""

from polyrelu.sweep.engines import local, ray_engine
from polyrelu.sweep.engines.ray_address import check_address, probe_address

__all__ = ["check_address", "local", "probe_address", "ray_engine"]
