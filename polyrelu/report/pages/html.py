"""A page in one file: style and script stand inside it, nothing is fetched, every text is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from polyrelu.files import write_atomically
from polyrelu.report.number_text import number_text


def write_page(
    path: str | Path,
    template: tuple[str, str],
    filters: Mapping[str, Callable[..., str]],
    *,
    images: bool = False,
    **values: Any,
) -> Path:
    """Fill the ``template`` NAME.html.j2 of a package, whole or not at all, and return the path.

    It gets the ``values``, ``style`` (NAME.css), ``script`` (NAME.js, or "") and the Content-Security-Policy
    that allows these two only, and ``images`` that are embedded.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": number_text, **filters}
    package, name = template
    text, style, script = (_resource(package, f"{name}.{kind}") for kind in ("html.j2", "css", "js"))
    page = environment.from_string(text).render(
        style=Markup(style), script=Markup(script), policy=_policy(style, script, images), **values
    )
    return write_atomically(path, lambda temporary: temporary.write_text(page, encoding="utf-8", errors="replace"))


def _resource(package: str, name: str) -> str:
    """A file of a package; "" if there is none."""
    file = files(package).joinpath(name)
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _policy(style: str, script: str, images: bool) -> str:
    sources = {"style-src": style, "script-src": script}
    hashes = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in sources.items()
        if text
    }
    allowed = "".join(f"{kind} 'sha256-{digest}'; " for kind, digest in hashes.items())
    embedded = "img-src data:; " if images else ""
    return f"default-src 'none'; {embedded}{allowed}base-uri 'none'; form-action 'none'"
