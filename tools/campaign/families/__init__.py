"""Nets of every family, and points where they are hard, drawn from a seed; the table is FAMILIES."""

from tools.campaign.families import basic, extremes, models  # noqa: F401 - each adds its families to the table
from tools.campaign.families.draw import FAMILIES, POINTS, Drawn

__all__ = ["FAMILIES", "POINTS", "Drawn"]
