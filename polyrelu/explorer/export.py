"""The page as one file: scripts, styles and recording are inside it, so that it plays without a server."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parent / "static"
STANDALONE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


@cache
def source(name: str) -> str:
    """A file of the page."""
    return (STATIC / name).read_text(encoding="utf-8")


def modules() -> list[str]:
    """The scripts, by name."""
    return sorted(path.name for path in STATIC.glob("*.js"))


def embedded(value: Any) -> str:
    """JSON for the inside of a script element: nothing in it ends the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


SERVED = json.dumps({"imports": {"explorer/": "/static/"}})


def served_page(about: dict[str, Any]) -> str:
    """The page as the server hands it out."""
    return (
        source("index.html")
        .replace("{{policy}}", "")
        .replace("{{style}}", '<link rel="stylesheet" href="/static/style.css">')
        .replace("{{imports}}", SERVED)
        .replace("{{main}}", '<script type="module" src="/static/main.js"></script>')
        .replace("{{about}}", embedded(about))
    )


def standalone_page(about: dict[str, Any], recorded: list[Any]) -> str:
    """The page with a recording, in one file without any address in it."""
    imports = {f"explorer/{name}": _data(source(name)) for name in modules()}
    return (
        source("index.html")
        .replace("{{policy}}", f'<meta http-equiv="Content-Security-Policy" content="{STANDALONE_POLICY}">')
        .replace("{{style}}", f"<style>{source('style.css')}</style>")
        .replace("{{imports}}", json.dumps({"imports": imports}))
        .replace("{{main}}", '<script type="module">import "explorer/main.js";</script>')
        .replace("{{about}}", embedded({**about, "recorded": recorded}))
    )


def policy() -> str:
    """Content-Security-Policy of the server: only itself, and the one inline map of its modules."""
    digest = base64.b64encode(hashlib.sha256(SERVED.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _data(text: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"
