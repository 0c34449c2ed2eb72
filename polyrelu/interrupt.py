"""Ctrl-C, one way for every command: acknowledged at once, answered where nothing is lost; a second one ends all.

A signal is written down a socket the moment it comes (`signal.set_wakeup_fd`), also while the main thread is inside a
long call of torch, LAPACK or pyarrow, where a Python handler would have to wait. A thread at the other end then acts:

    first signal, in work that `waits`     says what is being finished; `CtrlC.answer` raises KeyboardInterrupt there
    first signal, anywhere else            says what is kept and ends the process: files are whole at any time
    second signal                          says what is kept and ends the process

The exit status is 128 + the number of the signal: 130 after Ctrl-C, 143 after SIGTERM. Only a program may do this to
its process, so nothing happens before `listen`; callers of the library get Python's own KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
TOGETHER = 0.05  # seconds: signals that come within are one, as `timeout` and wrappers send them twice
STARVED = 60.0  # seconds the thread that acknowledges may wait for a processor, on a crowded machine
AGAIN = "Ctrl-C again stops at once"
TWICE = 1.0  # seconds within which a second Ctrl-C in a library call does not count
PLAIN = "interrupted; nothing is half-written, and the same command begins anew"
LONGEST = 10.0  # seconds that renaming may take on a crowded machine; it takes none on a quiet one
SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"  # a progress bar had hidden it


class CtrlC:
    """What Ctrl-C means for a block of work; the innermost block counts.

    kept : a sentence that says what is kept and how to go on; asked for when it is needed, perhaps by another thread
    finishing : what the first Ctrl-C waits for; without it, and while ``waits`` is False, it waits for nothing
    """

    def __init__(self, kept: Callable[[], str], finishing: str = "") -> None:
        self.kept, self.finishing, self.waits = kept, finishing, bool(finishing)
        self.promised = False  # a person was told what is being finished

    def __enter__(self) -> CtrlC:
        _blocks.append(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _blocks.remove(self)
        if isinstance(error, KeyboardInterrupt) and not error.args:
            error.args = (self.kept(),)  # for whoever tells it

    @property
    def asked(self) -> bool:
        """Was it pressed, in work that finishes something first?"""
        return _listener is not None and bool(_listener.asked) and (self.waits or self.promised)

    def answer(self) -> None:
        """Stop here, if that was asked: everything fits together."""
        if self.asked:
            assert _listener is not None
            _listener.acknowledged.wait(STARVED)
            raise KeyboardInterrupt


class Listener:
    """Takes the signals of this process; ``end`` is what ends it."""

    def __init__(self, end: Callable[[int], Any]) -> None:
        self.end, self.asked = end, 0
        self.acknowledged = threading.Event()
        self.here, self.there = socket.socketpair()
        self.there.setblocking(False)
        self.descriptor = signal.set_wakeup_fd(self.there.fileno(), warn_on_full_buffer=False)  # first: none is lost
        self.before = {number: signal.signal(number, self._note) for number in SIGNALS}
        self.thread = threading.Thread(target=self._watch, daemon=True, name="polyrelu-interrupt")
        self.thread.start()

    def again(self) -> None:
        """Take the signals once more, after a library has put handlers of its own in place."""
        for number in SIGNALS:
            signal.signal(number, self._note)
        signal.set_wakeup_fd(self.there.fileno(), warn_on_full_buffer=False)

    def stop(self) -> None:
        """Restore the handlers of the signals that were there before, and end the thread."""
        signal.set_wakeup_fd(self.descriptor)
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.there.close()
        self.thread.join()
        self.here.close()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = self.asked or number

    def _watch(self) -> None:
        while number := self._heard():
            self.asked = self.asked or number
            if not self.acknowledged.is_set():
                time.sleep(TOGETHER)
                self._drain()
                block = _current()
                if block.waits:
                    block.promised = True
                    _say(f"{block.finishing}; {AGAIN}")
                    self.acknowledged.set()
                    continue
                self.acknowledged.set()
            self._end(number)

    def _heard(self) -> int:
        """The next of our signals; 0 when there will be none."""
        while content := self.here.recv(1):
            if content[0] in SIGNALS:
                return content[0]
        return 0

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.here.recv(64, socket.MSG_DONTWAIT):
                pass

    def _end(self, number: int) -> None:
        block, sentence = _current(), PLAIN
        with contextlib.suppress(Exception):
            sentence = block.kept()
        held = _whole.acquire(timeout=LONGEST)
        for action in reversed(_undo):
            with contextlib.suppress(Exception):
                action()
        with contextlib.suppress(Exception):
            if os.isatty(2):
                os.write(2, SHOW_CURSOR)
        _say(sentence)
        self.end(128 + number)
        if held:
            _whole.release()


_blocks: list[CtrlC] = []
_undo: list[Callable[[], Any]] = []
_whole = threading.Lock()  # has whoever renames files that belong together
_listener: Listener | None = None


def listen() -> None:
    """Take Ctrl-C and SIGTERM from here to the end of the process; only the main thread of a program can."""
    global _listener
    if _listener is None and threading.current_thread() is threading.main_thread():
        _listener = Listener(os._exit)


def listen_again() -> None:
    """The same after a library (Ray) has put handlers of its own in place; nothing where nobody listens."""
    if _listener is not None and threading.current_thread() is threading.main_thread():
        _listener.again()


@contextlib.contextmanager
def listening(end: Callable[[int], Any]) -> Iterator[Listener]:
    """For tests: listen as long as the block lasts; ``end(exit status)`` is called where the process would end."""
    global _listener
    before, _listener = _listener, Listener(end)
    try:
        yield _listener
    finally:
        _listener.stop()
        _listener = before


def status() -> int:
    """The exit status of a command that was interrupted."""
    return 128 + ((_listener.asked if _listener else 0) or signal.SIGINT)


@contextlib.contextmanager
def undone(action: Callable[[], Any]) -> Iterator[None]:
    """As long as the block lasts, ``action`` (quick, from any thread) is called if the process is ended from here."""
    _undo.append(action)
    try:
        yield
    finally:
        _undo.remove(action)


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """No end comes from here within this block, which takes no time: renaming files that belong together."""
    with _whole:
        yield


def run_child(command: list[str], *, timeout: float, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of a program that is killed, with all it started, when this process is ended or time is up."""
    with subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as child:  # fmt: skip

        def kill() -> None:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)

        with undone(kill):
            try:
                said, complained = child.communicate(timeout=timeout)
            except BaseException:
                kill()
                raise
    return subprocess.CompletedProcess(command, child.returncode, said, complained)


class Patience:
    """For library calls: Ctrl-C is noted and answered between settings; a second one, a second later, at once.

    Nothing is done where the caller has a handler of its own, or in a thread that may have none.
    """

    def __init__(self) -> None:
        self.asked: float | None = None
        main = threading.current_thread() is threading.main_thread()
        self.ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def __enter__(self) -> Patience:
        if self.ours:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self.ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.asked is None:
            self.asked = time.monotonic()
        elif time.monotonic() - self.asked > TWICE:
            raise KeyboardInterrupt


def _current() -> CtrlC:
    """The innermost block of work."""
    return _blocks[-1] if _blocks else CtrlC(lambda: PLAIN)


def _say(message: str) -> None:
    """Straight to the terminal: the buffered stream may be in use by the main thread."""
    with contextlib.suppress(OSError):
        os.write(2, f"\npolyrelu: {message}\n".encode(errors="replace"))
