"""A server of the explorer on a free port, as a person starts it, and ways to ask it."""

import asyncio
import http.client
import json
import threading

import pytest
from typer.testing import CliRunner
from waiting import LIMIT

SMALL = {"dim": 20, "samples": 200, "width": 20, "alpha": 0.05, "positive": 3, "negative": 2}


class Served:
    """A running server; `stop` ends it as Ctrl-C would."""

    def __init__(self, saved=None, port=0):
        uvicorn = pytest.importorskip("uvicorn", reason="the explorer needs the extra 'web'")
        pytest.importorskip("starlette", reason="the explorer needs the extra 'web'")
        from polyrelu.cli.explore import listen
        from polyrelu.explorer import application

        self.app = application(saved)
        self.socket = listen(port)
        self.port = self.socket.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(self.app, log_level="warning", timeout_graceful_shutdown=1))
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets=[self.socket])))
        self.thread.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/"

    def stop(self):
        self.server.should_exit = True
        self.thread.join(LIMIT)
        self.socket.close()
        assert not self.thread.is_alive()

    def ask(self, path, body=None, **headers):
        """Status, headers and text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            given = {"Content-Type": "application/json"} if body is not None else {}
            text = None if body is None else json.dumps(body)
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET" if body is None else "POST", path, text, {**given, **names})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def flow(self, tab="tab-of-a-test", **setting):
        """All messages of a flow."""
        status, _, text = self.ask("/flow", {"tab": tab, "setting": {**SMALL, **setting}})
        assert status == 200, text
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A run of one's own."""
    from polyrelu.cli.application import app

    out = tmp_path_factory.mktemp("runs") / "mine"
    sizes = ["--dim", "12", "--samples", "80", "--width", "16", "--clusters", "3+2", "--seed", "4"]
    done = CliRunner().invoke(app, ["flow", "--p", "3", *sizes, "--out", str(out), "--quiet"])
    assert done.exit_code == 0
    return out


@pytest.fixture(scope="module")
def served():
    running = Served()
    yield running
    running.stop()


@pytest.fixture
def start():
    """Servers of one's own, to be stopped and started."""
    running = []

    def go(**settings):
        running.append(Served(**settings))
        return running[-1]

    yield go
    for one in running:
        if one.thread.is_alive():
            one.stop()
