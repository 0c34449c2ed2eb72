"""Documents that open in a browser: the claims measured again, the diagnosis of a classifier. One file each."""

from polyrelu.report.pages.claims_page import About, DrawnFigure, write_claims_page
from polyrelu.report.pages.diagnosis_page import write_diagnosis_page
from polyrelu.report.pages.diagnosis_words import AHEAD, EXACT, NONE, PROVEN, best_rival, sentences

__all__ = [
    "AHEAD",
    "EXACT",
    "NONE",
    "PROVEN",
    "About",
    "DrawnFigure",
    "best_rival",
    "sentences",
    "write_claims_page",
    "write_diagnosis_page",
]
