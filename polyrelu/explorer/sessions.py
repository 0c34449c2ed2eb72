"""One flow and one point a tab: whoever asks for another stops the first, and what is stopped ends at its next step.

Both run in threads, which need no second import of torch; every message they tell is a chance to stop, and a flow
tells one at each step. Flows of one tab take turns, and so do its points, so that a hundred starts do not compute side
by side.
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
from polyrelu.explorer.frames import Message, Recording, Tell

TABS = 8  # pages that are remembered; of those at rest the one used longest ago is forgotten
PATIENCE = 0.05  # seconds between two looks at whether whoever waits for a turn is still wanted
CROWD = f"there are {TABS} pages at work already, which is as many as there may be; close one of them or wait."
SUPERSEDED: Message = {"kind": "superseded", "error": "another question came after this one."}
NAME = re.compile(r"[0-9a-z-]{8,64}")


class Stopped(Exception):  # noqa: N818 - it says what happened
    """Nobody wants the rest any more."""


Work = Callable[[Tell], None]
Look = Callable[[Tell], Message]


class Job:
    """A flow in a thread of its own, and its messages as lines of JSON."""

    def __init__(self, work: Work, turn: threading.Lock) -> None:
        """Begin ``work`` when it has the ``turn``."""
        self.stopped = threading.Event()
        self.loop, self.lines = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()
        self.thread = threading.Thread(target=self._run, args=(work, turn), daemon=True, name="explorer-flow")
        self.thread.start()

    @property
    def running(self) -> bool:
        """Does anybody still wait for its end?"""
        return self.thread.is_alive() and not self.stopped.is_set()

    def stop(self) -> None:
        """Let it end at its next step."""
        self.stopped.set()

    async def stream(self) -> AsyncIterator[bytes]:
        """Its lines as they come; if whoever reads them goes away, the work stops."""
        try:
            while (line := await self.lines.get()) is not None:
                yield line
        finally:
            self.stop()

    def tell(self, message: Message) -> None:
        """Hand a message to the reader, or stop."""
        if self.stopped.is_set():
            raise Stopped
        if message["kind"] != "working":
            self._put(json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n")

    def _put(self, line: bytes | None) -> None:
        try:
            self.loop.call_soon_threadsafe(self.lines.put_nowait, line)
        except RuntimeError:  # the server has ended
            raise Stopped from None

    def _run(self, work: Work, turn: threading.Lock) -> None:
        try:
            while not turn.acquire(timeout=PATIENCE):
                self.tell({"kind": "working"})
            try:
                self.tell({"kind": "begun"})
                work(self.tell)
                self.tell({"kind": "done"})
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
            self.tell({"kind": "failed", "error": sentence})


class Tab:
    """A page: the flow and the point under way, and the last flow that can be looked at, the ``run``-th."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.job: Job | None = None
        self.recording: Recording | None = None
        self.run = 0
        self.turn, self.next = threading.Lock(), asyncio.Lock()
        self.looked = threading.Event()  # set: whoever looks at a point may stop

    def start(self, work: Work) -> Job:
        """Stop what is under way and begin ``work``."""
        self.stop()
        self.job = Job(work, self.turn)
        return self.job

    def hold(self, recording: Recording) -> int:
        """Keep a flow that can be looked at from now on; its number."""
        self.recording, self.run = recording, self.run + 1
        return self.run

    async def look(self, work: Look) -> Message:
        """What ``work`` finds, after what was asked before has stopped; a later question stops this one."""
        self.looked.set()
        mine = self.looked = threading.Event()

        def tell(message: Message) -> None:
            if mine.is_set():
                raise Stopped

        async with self.next:
            try:
                return SUPERSEDED if mine.is_set() else await asyncio.to_thread(work, tell)
            except Stopped:
                return SUPERSEDED

    @property
    def running(self) -> bool:
        """Is a flow or a point under way?"""
        return (self.job is not None and self.job.running) or self.next.locked()

    def stop(self) -> None:
        """Stop what is under way."""
        self.looked.set()
        if self.job is not None:
            self.job.stop()


class Tabs:
    """All pages that are open, by the names they gave themselves."""

    def __init__(self) -> None:
        """None yet."""
        self.open: OrderedDict[str, Tab] = OrderedDict()

    def find(self, name: object) -> Tab | None:
        """The tab of that name, if it is remembered."""
        good = isinstance(name, str) and NAME.fullmatch(name) is not None
        require(good, "tab", str(name)[:40], "8 to 64 small letters, digits and dashes")
        if name in self.open:
            self.open.move_to_end(str(name))
        return self.open.get(str(name))

    def tab(self, name: object) -> Tab:
        """The tab of that name, a new one if need be; a page at rest makes room for it, one at work does not."""
        found = self.find(name)
        if found is not None:
            return found
        if len(self.open) >= TABS:
            idle = next((key for key, tab in self.open.items() if not tab.running), None)
            if idle is None:
                raise InputError(CROWD)
            self.open.pop(idle).stop()
        return self.open.setdefault(str(name), Tab())

    def stop(self) -> None:
        """Stop everything."""
        for tab in self.open.values():
            tab.stop()
