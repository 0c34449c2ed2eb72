"""Documents that open in a browser: one renderer, and the claims measured again. One file each."""

from polyrelu.report.pages.claims_page import About, DrawnFigure, write_claims_page
from polyrelu.report.pages.html import write_page

__all__ = ["About", "DrawnFigure", "write_claims_page", "write_page"]
