"""What people look at after a run: its summary and numbers as text here, pictures in figures, documents in pages."""

from polyrelu.report.number_text import number_text, range_text
from polyrelu.report.summary import RunSummary, power_text, summarise

__all__ = ["RunSummary", "number_text", "power_text", "range_text", "summarise"]
