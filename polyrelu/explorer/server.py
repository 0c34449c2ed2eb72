"""The explorer's server: the page, its flows as lines of JSON, and nothing for other machines.

It listens on 127.0.0.1 only. A page of another site could still reach it (by a name that resolves to 127.0.0.1, or
by a form), so every request must name this server as its Host and, if it names an Origin, as that too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyrelu._version import __version__
from polyrelu.errors import InputError, require
from polyrelu.explorer import frames, pages, radii
from polyrelu.explorer.parameters import CHOICES, PARAMETERS, PRESETS, Setting
from polyrelu.explorer.saved_run import SavedRun
from polyrelu.explorer.sessions import SUPERSEDED, Sessions
from polyrelu.explorer.training_problem import flow_problem

LOCAL_NAMES = ("127.0.0.1", "localhost")
HEADERS = {
    "Content-Security-Policy": pages.policy(),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MAX_QUESTION, MAX_RECORDING = 10_000, 64_000_000  # bytes of a question, and of a recording to be exported


class Guard:
    """Refuses other Hosts and Origins and long bodies; forbids the page everything but this server."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_local(host) or (origin is not None and origin != f"http://{host}"):
            await PlainTextResponse("This page answers to its own address only.", 403)(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, guarded)


def is_local(host: str) -> bool:
    """Is it 127.0.0.1 or localhost, with or without a port?"""
    name, colon, port = host.partition(":")
    return name in LOCAL_NAMES and (not colon or (port.isascii() and port.isdigit()))


async def json_body(request: Request, most: int = MAX_QUESTION) -> dict[str, Any]:
    """The JSON object of a request, unless it is longer than ``most``."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    require(kind == "application/json", "content-type", kind or "none", "application/json")
    text = bytearray()
    async for part in request.stream():
        text += part
        require(len(text) <= most, "request", f"more than {most} bytes", f"at most {most} bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("request: expected a JSON object.")
    return found


def application(saved: SavedRun | None = None) -> Starlette:
    """The server of the explorer; ``saved`` is a run to show first."""
    sessions = Sessions()

    async def page(request: Request) -> Response:
        return HTMLResponse(pages.served_page(about(saved)))

    async def flow(request: Request) -> Response:
        given = await json_body(request)
        session, asked = sessions.session(given.get("tab")), given.get("setting")
        setting = None if asked == "saved_run" and saved is not None else Setting.from_json(asked)

        def work(send: frames.Send) -> None:
            if setting is None:
                assert saved is not None
                recording = saved.stream(send)
            else:
                recording, _ = frames.stream(flow_problem(setting), send)
            send({"kind": "ready", "run": session.keep_recording(recording)})
            radii.stream(recording, send)

        return StreamingResponse(session.start(work).lines(), media_type="application/x-ndjson")

    async def point(request: Request) -> Response:
        given = await json_body(request)
        session = sessions.find(given.get("tab"))
        if session is None or session.recording is None:
            return JSONResponse({"kind": "nothing", "error": "there is no finished flow to look at yet."})
        if given.get("run", session.run) != session.run:  # about a flow that another one has followed
            return JSONResponse(SUPERSEDED)
        question = radii.Question.from_json(given, session.recording)
        return JSONResponse(await session.answer(partial(radii.answer, session.recording, question)))

    async def whole(request: Request) -> Response:
        given = await json_body(request, MAX_RECORDING)
        recorded = given.get("recorded")
        good = isinstance(recorded, list) and all(isinstance(message, dict) for message in recorded)
        require(good, "recorded", type(recorded).__name__, "a list of messages")
        assert isinstance(recorded, list)
        try:
            text = pages.standalone_page(about(None), recorded)
        except ValueError:  # JSON has no infinity, but 1e999 is one
            raise InputError("recorded: expected finite numbers.") from None
        return HTMLResponse(text)

    async def claim(request: Request) -> Response:
        return HTMLResponse(await asyncio.to_thread(pages.claim_page, request.path_params["id"]))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        sessions.stop()

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/flow", flow, methods=["POST"]),
            Route("/point", point, methods=["POST"]),
            Route("/export", whole, methods=["POST"]),
            Route("/claim/{id}", claim),
            Mount("/static", StaticFiles(directory=pages.STATIC)),
        ],
        lifespan=lifespan,
        exception_handlers={InputError: refuse, ClientDisconnect: gone},
    )
    app.add_middleware(Guard)
    app.state.sessions = sessions
    return app


def about(saved: SavedRun | None) -> dict[str, Any]:
    """What the page knows before it asks."""
    return {
        "version": __version__,
        "limits": [asdict(limit) for limit in PARAMETERS],
        "choices": {name: list(values) for name, values in CHOICES.items()},
        "presets": [asdict(preset) for preset in PRESETS],
        "saved_run": None if saved is None else saved.name,
    }


def warm_up() -> None:
    """One small flow and a radius, without a reader: what is loaded at first use is ready for the page."""
    recording, _ = frames.stream(flow_problem(Setting(p=3, dim=6, samples=20, width=4)), lambda message: None)
    question = radii.Question(frame=0, centres=(0, 1), point=(1.0, 0.0), label=1, pgd=0.0)
    radii.answer(recording, question)


async def refuse(request: Request, error: Exception) -> Response:
    """Bad input, in a sentence."""
    return JSONResponse({"error": str(error)}, 422)


async def gone(request: Request, error: Exception) -> Response:
    """The browser has closed the connection."""
    return Response(status_code=499)
