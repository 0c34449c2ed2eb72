"""The interactive page: a flow seen frame by frame, one point looked at closely, and the server on this machine."""

from polyrelu.explorer.saved_run import SavedRun, read_run
from polyrelu.explorer.server import application, warm_up

__all__ = ["SavedRun", "application", "read_run", "warm_up"]
