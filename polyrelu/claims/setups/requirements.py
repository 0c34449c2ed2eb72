"""What must be on this machine before an experiment can run."""

from __future__ import annotations

from polyrelu.claims import Profile
from polyrelu.data.images import cached


def needs_mnist(profile: Profile) -> str:
    """Why the published size cannot be run here, or ""."""
    there = profile == "quick" or cached("mnist") is not None
    return "" if there else "Needs MNIST: polyrelu data fetch mnist."
