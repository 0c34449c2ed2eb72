"""The pages as text: as the server hands them out, and as one file that plays a recording without a server."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from polyrelu.claims import PAPERS, for_profile, select

STATIC = Path(__file__).parent / "static"
STANDALONE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
SERVED = json.dumps({"imports": {"explorer/": "/static/"}})
CLAIM_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{id}: a claim</title><link rel="stylesheet" href="/static/style.css">
<body class="claim"><main><h1>{id}</h1><p class="sentence">{sentence}</p>
<dl><dt>Source</dt><dd>{source}, {where}</dd><dt>Published</dt><dd>{published}</dd>
<dt>What we expect to measure</dt><dd><b>{verdict}</b> {reason}</dd>
<dt>Measure it again</dt><dd><code>polyrelu claims run {id}</code></dd></dl></main></body></html>
"""


@cache
def source(name: str) -> str:
    """A file of the page."""
    return (STATIC / name).read_text(encoding="utf-8")


def served_page(about: dict[str, Any]) -> str:
    """The page as the server hands it out."""
    return _filled(
        about,
        policy="",
        style='<link rel="stylesheet" href="/static/style.css">',
        imports=SERVED,
        main='<script type="module" src="/static/main.js"></script>',
    )


def standalone_page(about: dict[str, Any], recorded: list[Any]) -> str:
    """The page with a recording, in one file without any address in it."""
    scripts = sorted(path.name for path in STATIC.glob("*.js"))
    imports = {f"explorer/{name}": f"data:text/javascript;base64,{_base64(source(name).encode())}" for name in scripts}
    return _filled(
        {**about, "recorded": recorded},
        policy=f'<meta http-equiv="Content-Security-Policy" content="{STANDALONE_POLICY}">',
        style=f"<style>{source('style.css')}</style>",
        imports=json.dumps({"imports": imports}),
        main='<script type="module">import "explorer/main.js";</script>',
    )


def _filled(about: dict[str, Any], **parts: str) -> str:
    """The page with its parts, and what it knows as JSON in which nothing ends the script element."""
    text = json.dumps(about, allow_nan=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    page = source("index.html")
    for name, part in {**parts, "about": text}.items():
        page = page.replace("{{" + name + "}}", part)
    return page


def policy() -> str:
    """Content-Security-Policy of the server: only itself, and the one inline map of its modules."""
    digest = _base64(hashlib.sha256(SERVED.encode()).digest())
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def claim_page(name: str) -> str:
    """HTML of one claim; an id that there is not is refused."""
    claim = select([name])[0]
    paper = PAPERS.get(claim.paper)
    words = {
        "id": claim.id,
        "sentence": claim.sentence,
        "source": claim.paper if paper is None else paper.citation,
        "where": claim.where,
        "published": claim.published or "no number",
        "verdict": for_profile(claim.expects, "quick").value,
        "reason": for_profile(claim.reason, "quick"),
    }
    return CLAIM_PAGE.format(**{key: escape(value) for key, value in words.items()})


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
