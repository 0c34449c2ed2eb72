"""The explorer's server without a network: its application is asked directly, as a page would."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from unittest import mock

SETTING = {"p": 3.0, "positive": 2, "negative": 1, "alpha": 0.1, "dim": 6, "samples": 20, "width": 4,
           "log10_scale": -3.0,
           "seed": 0, "start": "balanced"}  # fmt: skip
POINT = {"frame": 0, "centres": [0, 1], "point": [1.0, 0.0], "label": 1, "pgd": 0.0}


class PageError(Exception):
    """The server answered with a failure that is not the page's fault."""


def ask(app: Any, path: str, body: bytes, method: str = "POST") -> str:
    """The whole answer to one request, as text."""
    headers = [(b"host", b"127.0.0.1:80"), (b"content-type", b"application/json")]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
             "raw_path": path.encode(),
             "query_string": b"", "headers": headers, "scheme": "http", "server": ("127.0.0.1", 80),
             "client": ("127.0.0.1", 9), "root_path": ""}  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def run() -> None:
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop()
            await asyncio.sleep(3600)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await app(scope, receive, send)

    asyncio.run(run())
    text = b"".join(message.get("body", b"") for message in sent).decode()
    failed = [line for line in text.splitlines() if '"the flow failed' in line]
    if sent[0]["status"] >= 500 or failed:
        raise PageError(f"{path}: status {sent[0]['status']} {failed[:1]} {text[:300]}")
    return text


def served(*words: object) -> Any:
    """The application that ``polyrelu explore`` would serve, or None where the command refused."""
    import uvicorn

    from tools.fuzz.readers import run

    kept: list[Any] = []

    class Server:
        """Takes the application and serves nothing."""

        def __init__(self, config: Any) -> None:
            kept.append(config.app)

        def run(self, **more: Any) -> None:
            """At once."""

    with mock.patch.object(uvicorn, "Server", Server):
        run("explore", *words, "--port", 0, "--no-browser")
    return kept[0]


def own_run(folder: Path) -> None:
    """A folder of flow as the page gets it."""
    app = served("run")
    ask(app, "/", b"", "GET")
    ask(app, "/flow", json.dumps({"tab": "a", "setting": "saved_run"}).encode())


def request(path: str, body: bytes) -> str:
    """A message to a server that has a small flow to talk about."""
    app = served()
    if path == "/point":
        ask(app, "/flow", json.dumps({"tab": "a", "setting": SETTING}).encode())
    return ask(app, path, body)
