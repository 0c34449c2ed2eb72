"""Every certificate against independent searches: ``python -m tools.campaign``."""
