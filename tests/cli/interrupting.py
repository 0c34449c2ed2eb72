"""Commands as real processes that are held at a place until something has been seen: nothing depends on speed."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from typer.testing import CliRunner
from waiting import LIMIT

from polyrelu.cli.application import app

HELD = Path(__file__).with_name("held_command.py")
AGAIN = "Ctrl-C again stops at once"
NEW = "the same command begins anew"
RECIPE = "mixture:dim=8,clusters=2+2,alpha=0.1,n=250,seed=1"


class Command:
    """A command under way; what it says on stderr and stdout so far."""

    def __init__(self, folder, *words, hold="", program=(str(HELD),), **environment):
        self.release = folder / "release"
        self.said = {"stdout": "", "stderr": ""}
        self.news = threading.Condition()
        known = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "HOLD": hold, "RELEASE": str(self.release)}
        self.process = subprocess.Popen(
            [sys.executable, *program, *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True, env={**known, **environment},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        self.readers = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self.said]
        for reader in self.readers:
            reader.start()

    def _read(self, name):
        for line in getattr(self.process, name):
            with self.news:
                self.said[name] += line
                self.news.notify_all()

    def until(self, words, where="stderr"):
        """Wait for these words; once they are there, the process has come so far."""
        with self.news:
            end = time.monotonic() + LIMIT
            while words not in self.said[where] and not self.over() and time.monotonic() < end:
                self.news.wait(1.0)  # a process that is over says nothing more
        assert words in self.said[where], self.said
        return self

    def over(self):
        return self.process.poll() is not None and not any(reader.is_alive() for reader in self.readers)

    def press(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self

    def let_go(self):
        self.release.touch()
        return self

    def end(self):
        """Exit status, and stderr; never with a traceback."""
        try:
            self.process.wait(LIMIT)
        finally:
            self.process.kill()
        for reader in self.readers:
            reader.join(LIMIT)
        self.process.stdout.close()
        self.process.stderr.close()
        assert "Traceback" not in self.said["stderr"], self.said["stderr"]
        assert "KeyboardInterrupt" not in self.said["stderr"]
        return self.process.returncode, self.said["stderr"]


def finished(folder, *words):
    """The command without any disturbance, in this process, where everything is loaded; what it printed."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="polyrelu")
    finally:
        os.chdir(before)
    assert result.exit_code == 0, result.stderr
    return result


def files(folder):
    """Every file below, and what it holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def stray(folder):
    """Temporary files that were left behind."""
    return [path for path in folder.rglob(".*") if path.name != ".lock"]


def sweep_file(made, folder, **more):
    """A sweep of six settings that end when they are let go."""
    (folder / "slow.py").write_text((made / "slow.py").read_text())
    lines = ['function = "slow:slow"', "grid.x = [0, 1, 2, 3, 4, 5]", f'fixed.release = "{folder / "release"}"']
    (folder / "slow.toml").write_text("\n".join([f"{name} = {value}" for name, value in more.items()] + lines) + "\n")
    return folder / "slow.toml"


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
