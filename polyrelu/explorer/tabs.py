"""One flow a tab: whoever starts another stops the first, and what is stopped ends at its next step.

A flow runs in a thread, which needs no second import of torch; every message it tells is a chance to stop, and a flow
tells one at each step. Threads of one tab wait for each other, so that a hundred starts do not compute side by side;
but only a moment, for the proof of a hard point may take a second to notice.
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

TABS = 8  # pages that are remembered; the one used longest ago is forgotten
PATIENCE = 0.2  # seconds a flow waits for the one before it to end
NAME = re.compile(r"[0-9a-z-]{8,64}")


class Stopped(Exception):  # noqa: N818 - it says what happened
    """Nobody wants the rest any more."""


Work = Callable[[Tell], None]


class Job:
    """A flow in a thread of its own, and its messages as lines of JSON."""

    def __init__(self, work: Work, before: Job | None) -> None:
        """Begin ``work`` once the job ``before`` has ended."""
        self.stopped = threading.Event()
        self.loop, self.lines = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()
        self.thread = threading.Thread(target=self._run, args=(work, before), daemon=True, name="explorer-flow")
        self.thread.start()

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

    def _run(self, work: Work, before: Job | None) -> None:
        try:
            if before is not None:
                before.thread.join(PATIENCE)
            before = None
            self.tell({"kind": "begun"})
            work(self.tell)
            self.tell({"kind": "done"})
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
    """A page: the flow under way, and the last one that can be looked at."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.job: Job | None = None
        self.recording: Recording | None = None

    def start(self, work: Work) -> Job:
        """Stop what is under way and begin ``work``."""
        before = self.job
        self.stop()
        self.job = Job(work, before)
        return self.job

    def stop(self) -> None:
        """Stop what is under way."""
        if self.job is not None:
            self.job.stop()


class Tabs:
    """All pages that are open, by the names they gave themselves."""

    def __init__(self) -> None:
        """None yet."""
        self.open: OrderedDict[str, Tab] = OrderedDict()

    def tab(self, name: object) -> Tab:
        """The tab of that name, a new one if need be."""
        good = isinstance(name, str) and NAME.fullmatch(name) is not None
        require(good, "tab", str(name)[:40], "8 to 64 small letters, digits and dashes")
        tab = self.open.setdefault(str(name), Tab())
        self.open.move_to_end(str(name))
        while len(self.open) > TABS:
            self.open.popitem(last=False)[1].stop()
        return tab

    def stop(self) -> None:
        """Stop everything."""
        for tab in self.open.values():
            tab.stop()
