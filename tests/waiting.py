"""Ways to wait for what happens, however long it takes: no test may depend on how fast the machine is.

LIMIT is only there so that nothing waits for ever. Tests that wait carry the marker ``waits``.
"""

import os
import select
import time

LIMIT = 600.0  # seconds


def wait_for(true, what="it"):
    """Wait until ``true()``; what it gave."""
    end = time.monotonic() + LIMIT
    while not (found := true()):
        assert time.monotonic() < end, f"{what} did not happen within {LIMIT:g} s"
        time.sleep(0.02)
    return found


def shown(terminal, words):
    """What a pseudo-terminal or pipe shows, until it shows these words; it must."""
    seen, end = b"", time.monotonic() + LIMIT
    while words not in seen:
        ready = select.select([terminal], [], [], max(0, end - time.monotonic()))[0]
        assert ready, f"{words!r} was not shown within {LIMIT:g} s: {seen!r}"
        try:
            part = os.read(terminal, 4096)
        except OSError:  # a terminal that is closed at the other end
            part = b""
        assert part, f"{words!r} was never shown: {seen!r}"
        seen += part
    return seen


def ended(process):
    """What is left of a process's output and errors, once it has ended."""
    return process.communicate(timeout=LIMIT)
