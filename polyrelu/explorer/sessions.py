"""A session for each tab of a browser: one flow and one point at a time; a new question stops the one before.

Both run in threads, which need no second import of torch. Sending a message is where they can stop, and a flow sends
one at each step. The flows of a session run one after another, and so do its points.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable

from polyrelu.errors import InputError, require
from polyrelu.explorer.frames import Message, Recording, Send

MAX_SESSIONS = 8  # sessions that are kept; of the idle ones the one used longest ago is dropped
POLL_SECONDS = 0.05  # between two looks at whether a waiting flow was stopped
TOO_MANY = (
    f"there are {MAX_SESSIONS} pages at work already, which is as many as there may be; close one of them or wait."
)
SUPERSEDED: Message = {"kind": "superseded", "error": "another question came after this one."}
NAME = re.compile(r"[0-9a-z-]{8,64}")


class Stopped(Exception):  # noqa: N818 - not an error
    """The page asked for something else, or is gone."""


class FlowThread:
    """A flow in a thread, begun once it holds the lock ``turn``, and its messages as lines of JSON."""

    def __init__(self, work: Callable[[Send], None], turn: threading.Lock) -> None:
        self.stopped = threading.Event()
        self.loop, self.queue = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()
        self.thread = threading.Thread(target=self._run, args=(work, turn), daemon=True, name="explorer-flow")
        self.thread.start()

    @property
    def running(self) -> bool:
        """Does anybody still wait for its end?"""
        return self.thread.is_alive() and not self.stopped.is_set()

    def stop(self) -> None:
        """End it at its next step."""
        self.stopped.set()

    async def lines(self) -> AsyncIterator[bytes]:
        """Its lines as they come; if the reader goes away, the work stops."""
        try:
            while (line := await self.queue.get()) is not None:
                yield line
        finally:
            self.stop()

    def send(self, message: Message) -> None:
        """Queue a message for the reader, or raise Stopped."""
        if self.stopped.is_set():
            raise Stopped
        if message["kind"] != "working":
            self._put(json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n")

    def _put(self, line: bytes | None) -> None:
        try:
            self.loop.call_soon_threadsafe(self.queue.put_nowait, line)
        except RuntimeError:  # the server has ended
            raise Stopped from None

    def _run(self, work: Callable[[Send], None], turn: threading.Lock) -> None:
        try:
            while not turn.acquire(timeout=POLL_SECONDS):
                self.send({"kind": "working"})
            try:
                self.send({"kind": "begun"})
                work(self.send)
                self.send({"kind": "done"})
            finally:
                turn.release()
        except Stopped:
            pass
        except InputError as error:
            self._fail(str(error))
        except Exception as error:
            self._fail(f"the flow failed: {type(error).__name__}: {error}")
        finally:
            with contextlib.suppress(Stopped):
                self._put(None)

    def _fail(self, sentence: str) -> None:
        with contextlib.suppress(Stopped):
            self.send({"kind": "failed", "error": sentence})


class Session:
    """A tab: the flow and the point under way, and the last finished flow, the ``run``-th."""

    def __init__(self) -> None:
        self.flow: FlowThread | None = None
        self.recording: Recording | None = None
        self.run = 0
        self.flow_turn, self.point_turn = threading.Lock(), asyncio.Lock()
        self.point_stopped = threading.Event()

    def start(self, work: Callable[[Send], None]) -> FlowThread:
        """Stop what is under way and begin ``work``."""
        self.stop()
        self.flow = FlowThread(work, self.flow_turn)
        return self.flow

    def keep_recording(self, recording: Recording) -> int:
        """Keep a finished flow, of which points can be asked from now on; its number."""
        self.recording, self.run = recording, self.run + 1
        return self.run

    async def answer(self, work: Callable[[Send], Message]) -> Message:
        """What ``work`` finds, after what was asked before has stopped; a later question stops this one."""
        self.point_stopped.set()
        stopped = self.point_stopped = threading.Event()

        def send(message: Message) -> None:
            if stopped.is_set():
                raise Stopped

        async with self.point_turn:
            try:
                return SUPERSEDED if stopped.is_set() else await asyncio.to_thread(work, send)
            except Stopped:
                return SUPERSEDED

    @property
    def running(self) -> bool:
        """Is a flow or a point under way?"""
        return (self.flow is not None and self.flow.running) or self.point_turn.locked()

    def stop(self) -> None:
        """Stop what is under way."""
        self.point_stopped.set()
        if self.flow is not None:
            self.flow.stop()


class Sessions:
    """The sessions of all open pages, by the names of their tabs."""

    def __init__(self) -> None:
        self.open: OrderedDict[str, Session] = OrderedDict()

    def find(self, name: object) -> Session | None:
        """The session of that tab, if it is kept."""
        good = isinstance(name, str) and NAME.fullmatch(name) is not None
        require(good, "tab", str(name)[:40], "8 to 64 small letters, digits and dashes")
        if name in self.open:
            self.open.move_to_end(str(name))
        return self.open.get(str(name))

    def session(self, name: object) -> Session:
        """The session of that tab, a new one if need be, in place of an idle one if there are too many."""
        found = self.find(name)
        if found is not None:
            return found
        if len(self.open) >= MAX_SESSIONS:
            idle = next((key for key, session in self.open.items() if not session.running), None)
            if idle is None:
                raise InputError(TOO_MANY)
            self.open.pop(idle).stop()
        return self.open.setdefault(str(name), Session())

    def stop(self) -> None:
        """Stop everything."""
        for session in self.open.values():
            session.stop()
