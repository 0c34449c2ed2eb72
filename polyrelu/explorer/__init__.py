"""The interactive page: a flow frame by frame, the radius of one point, and the server on this machine."""

from polyrelu.explorer.saved_run import SavedRun, read_run
from polyrelu.explorer.server import application, warm_up

__all__ = ["SavedRun", "application", "read_run", "warm_up"]
