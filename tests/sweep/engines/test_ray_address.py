"""What is no Ray cluster is told from one in its own protocol, and soon; what may be one is left to Ray."""

import contextlib
import http.server
import socket
import subprocess
import sys
import threading
from concurrent import futures
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner
from waiting import LIMIT

from polyrelu.cli.application import app
from polyrelu.errors import InputError
from polyrelu.sweep import probe_address
from polyrelu.sweep.engines import ray_address
from polyrelu.sweep.engines.ray_address import CLIENT, HEAD

pytestmark = pytest.mark.waits
FORMS = ("{}", "ray://{}")
REACH_SECONDS = ray_address.REACH_SECONDS
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # the first frame of every HTTP/2 server


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Whoever answers has time for it, however busy the machine is."""
    monkeypatch.setattr(ray_address, "REACH_SECONDS", LIMIT)


@contextmanager
def listening(answer=lambda stream: None):
    """A server that hears everybody out and does this."""
    over = threading.Event()

    def serve():
        while not over.is_set():
            try:
                stream, _ = server.accept()
            except OSError:
                return
            with stream:
                answer(stream)
                over.wait() if answer.__name__ == "silent" else None

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def refused(address):
    with pytest.raises(InputError) as caught:
        probe_address(address)
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_something_that_says_nothing(monkeypatch, form):
    def silent(stream):
        pass

    monkeypatch.setattr(ray_address, "REACH_SECONDS", 0.3)
    monkeypatch.setattr(ray_address, "_connected", lambda host, port, until: socket.create_connection((host, port)))
    with listening(silent) as place:
        said = refused(form.format(place))
    assert said == (
        f"address={form.format(place)}: expected a Ray cluster, but what listens there says nothing within 0.3 s; "
        "is it the port of the head node (6379 by default; ray:// 10001), not that of the dashboard?"
    )


def test_the_time_it_has_is_short():
    assert REACH_SECONDS <= 2  # with the start of the command it is said within three seconds


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_web_server(form):
    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            said = refused(form.format(f"127.0.0.1:{server.server_address[1]}"))
        finally:
            server.shutdown()
    assert "expected a Ray cluster, but a web server answers there" in said


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a web server answers there"),
        (b"-ERR unknown command 'PRI'\r\n", "something else answers there"),  # what listened at 6379 before Ray
        (b"", "what listens there hangs up"),
        (b"\x00\x00\x01\x04\x00\x00\x00\x00\x00\x00", "something else answers there"),  # SETTINGS come in sixes
        (b"\x00\x00\x00\x04\x00\x00\x00\x00\x07", "something else answers there"),  # and of no stream
        (SETTINGS + b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\x8d", "a web server answers there"),  # HTTP/2, status 404
        (SETTINGS + b"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88", "a web server answers there"),  # and 200
        (SETTINGS + b"\x00\x00\x08\x07\x00\x00\x00\x00\x00" + bytes(8), "what answers there refuses the question"),
        (SETTINGS + b"\x00\x00\x04\x03\x00\x00\x00\x00\x01" + bytes(4), "what answers there refuses the question"),
        (SETTINGS + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01", "something else answers there"),  # a frame of 16 MB
    ],
)
def test_other_answers(answer, words):
    def tell(stream):
        stream.recv(1 << 16)
        stream.sendall(answer)

    with listening(tell) as place:
        assert f"expected a Ray cluster, but {words}" in refused(place)


def test_a_server_that_never_ends_is_left_after_its_time(monkeypatch):
    sent = []

    def tell(stream):
        stream.sendall(SETTINGS)
        with contextlib.suppress(OSError):
            while len(sent) < 10**7:
                stream.sendall(b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + bytes(8))  # PING
                sent.append(1)

    monkeypatch.setattr(ray_address, "REACH_SECONDS", 0.3)
    monkeypatch.setattr(ray_address, "_connected", lambda host, port, until: socket.create_connection((host, port)))
    with listening(tell) as place:
        assert probe_address(place) == place  # it may be a Ray that is busy: Ray itself will say
    assert len(sent) < 10**7


def test_a_closed_port_and_a_name_that_nobody_has(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        assert "nothing answers there (Connection refused)" in refused(f"127.0.0.1:{taken.getsockname()[1]}")
    monkeypatch.setattr(
        ray_address, "REACH_SECONDS", REACH_SECONDS
    )  # where names cannot be looked up, that may take long
    assert "nothing answers there (" in refused("no-such-host.invalid:6379")


def test_a_name_that_takes_long_to_look_up(monkeypatch):
    """A resolver waits for many seconds and knows no limit; nobody waits for it."""
    asked, over = threading.Event(), threading.Event()

    def look_up(place, timeout):
        asked.set()
        over.wait(60)
        raise OSError("late")

    monkeypatch.setattr(ray_address.socket, "create_connection", look_up)
    monkeypatch.setattr(ray_address, "REACH_SECONDS", 0.1)
    assert "nothing answers there (no connection within 0.1 s)" in refused("far.away:6379")
    assert asked.wait(LIMIT) and not over.is_set()
    over.set()


@contextmanager
def grpc_server(answers):
    """A gRPC service with these methods, each with its answer or the status it fails with."""
    grpc = pytest.importorskip("grpc")

    class Methods(grpc.GenericRpcHandler):
        def service(self, details):
            if details.method not in answers:
                return None

            def call(request, context):
                if isinstance(answers[details.method], bytes):
                    return answers[details.method]
                return context.abort(answers[details.method], "no")

            return grpc.unary_unary_rpc_method_handler(call)

    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Methods(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize(("form", "method", "other"), [(FORMS[0], HEAD, CLIENT), (FORMS[1], CLIENT, HEAD)])
def test_grpc_services_are_told_apart_by_a_method_of_ray(form, method, other):
    grpc = pytest.importorskip("grpc")
    with grpc_server({}) as place:
        assert "expected a Ray cluster, but another gRPC service answers there" in refused(form.format(place))
    with grpc_server({other: b""}) as place:  # the client server is not the head, nor the other way round
        assert "another gRPC service answers there" in refused(form.format(place))
    for answer in (b"", b"\x0a\x00", grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE):
        with grpc_server({method: answer}) as place:  # the last two leave it open: Ray itself will say
            assert probe_address(form.format(place)) == form.format(place)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sweep", "claims", "reproduce"])
def test_every_command_with_an_address_says_so_before_anything_is_loaded(tmp_path, command):
    def tell(stream):
        stream.recv(1 << 16)
        stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    words = {"sweep": ["sweep", "none.toml"], "claims": ["claims", "run", "A"], "reproduce": ["reproduce"]}[command]
    code = (
        "import sys; from polyrelu import cli; sys.argv = ['polyrelu', *sys.argv[1:]]\n"
        f"from polyrelu.sweep.engines import ray_address; ray_address.REACH_SECONDS = {LIMIT}\n"
        "try:\n    cli.main()\nexcept SystemExit as end:\n"
        "    print(end.code, *{'torch', 'ray', 'numpy'} & set(sys.modules))\n"
    )
    with listening(tell) as place:
        words = [*words, "--engine", "ray", "--address", place, "--out", str(tmp_path / "out")]
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2"], done.stderr
    assert done.stderr.startswith(f"polyrelu: error: address={place}: expected a Ray cluster, but a web server answers")
    assert not (tmp_path / "out").exists()


def test_an_address_without_the_engine_is_still_refused(tmp_path):
    (tmp_path / "a.toml").write_text('function = "swept:square"\ngrid.x = [1]\n')
    result = CliRunner().invoke(app, ["sweep", str(tmp_path / "a.toml"), "--address", "head:1", "--out", str(tmp_path)])
    assert result.exit_code == 2 and "only the engine ray has an address" in result.stderr
