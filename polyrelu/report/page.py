"""One self-contained HTML file: pictures, tables and the commands that make them again. Nothing is fetched."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import final

from jinja2 import Environment, StrictUndefined

from polyrelu.errors import require
from polyrelu.files import write_atomically
from polyrelu.report.summary import RunSummary

TEMPLATE = "page.html.j2"
PNG = b"\x89PNG\r\n\x1a\n"


@final
@dataclass(frozen=True)
class Section:
    """One run on the page.

    ``picture``: the bytes of a PNG; ``command`` makes the run again; ``column`` heads it in a comparison of several.
    """

    heading: str
    column: str
    summary: RunSummary
    picture: bytes
    command: str
    settings: Mapping[str, str]
    versions: Mapping[str, str]

    def __post_init__(self) -> None:
        require(self.picture.startswith(PNG), "picture", f"{self.picture[:4]!r}...", "the bytes of a PNG file")

    @property
    def picture_text(self) -> str:
        """The picture as the page embeds it."""
        return base64.b64encode(self.picture).decode("ascii")


def write_page(path: str | Path, title: str, sections: Sequence[Section], note: str = "", badge: str = "") -> Path:
    """Write the page, whole or not at all; several runs are also compared in one table. Returns its path.

    ``note`` stands under the title and says what the page shows, ``badge`` above it what one must not overlook. Every
    text is escaped.
    """
    require(len(sections) > 0, "sections", "none", "at least one run to show")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8"))
    page = template.render(title=title, note=note, badge=badge, sections=sections, comparison=_comparison(sections))
    return write_atomically(path, lambda temporary: temporary.write_text(page, encoding="utf-8"))


def _comparison(sections: Sequence[Section]) -> list[tuple[str, list[str]]]:
    """(label, one text per run) of every line that some run has; nothing for a single run."""
    if len(sections) < 2:
        return []
    tables = [dict(section.summary.rows()) for section in sections]
    labels = list(dict.fromkeys(label for table in tables for label in table))
    return [(label, [table.get(label, "–") for table in tables]) for label in labels]
