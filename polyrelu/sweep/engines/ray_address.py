"""Is there a Ray cluster at this address? Asked in Ray's protocol, without Ray itself, which tries for minutes.

host:port is the head node's own server (6379 by default), ray://host:port its server for clients (10001). Both are gRPC
services over HTTP/2 (RFC 9113): the first frame of a server is SETTINGS, and a call of a method that only Ray has is
answered with a message (DATA), elsewhere with status 12, "unimplemented".
"""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from subprocess import TimeoutExpired

from polyrelu.errors import InputError
from polyrelu.interrupt import run_child

REACH_SECONDS = 2.0  # seconds an address has to answer
JOIN_SECONDS = 120.0  # seconds a cluster has to let us in: it has shown that it is one, and starting Ray takes time
TRY_CODE = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR'); ray.shutdown()"
HEAD, CLIENT = "/ray.rpc.NodeInfoGcsService/CheckAlive", "/ray.rpc.RayletDriver/ClusterInfo"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, GOAWAY = 0, 1, 3, 4, 7  # kinds of frames
END_STREAM, END_HEADERS, ACK = 1, 4, 1  # their flags
MAX_FRAME = 1 << 20  # bytes of a frame
GRPC = b"application/grpc"  # the content type of every answer of a gRPC service
UNIMPLEMENTED = b"grpc-status\x0212"  # as a literal header field (RFC 7541)
PORTS = "is it the port of the head node (6379 by default; ray:// 10001), not that of the dashboard?"


class OtherServiceError(Exception):
    """What answers there instead, in words."""


def check_address(address: str) -> None:
    """Refuse an address where no Ray cluster lets us in: Ray would try for minutes, and end this process then."""
    place = probe_address(address)
    try:
        tried = run_child([sys.executable, "-c", TRY_CODE, place], timeout=JOIN_SECONDS)
        why = last_line(tried.stderr) if tried.returncode else ""
    except TimeoutExpired:
        why = f"no answer within {JOIN_SECONDS:g} s; {PORTS}"
    if why:
        raise InputError(f"address={place}: expected a Ray cluster to connect to ({why}).")


def probe_address(address: str) -> str:
    """The same within two seconds and without Ray, as far as that can be seen from outside; where "auto" leads."""
    place = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    if place == "auto":
        return place
    match = re.fullmatch(r"(ray://)?(?:\[([0-9a-fA-F:]+)\]|([^\s:/\[\]]+)):([0-9]{1,5})", place)
    if match is None or not 0 < int(match[4]) < 65536:
        raise InputError(f"address={place}: expected host:port, ray://host:port or auto.")
    until = time.monotonic() + REACH_SECONDS
    try:
        with _connected(match[2] or match[3], int(match[4]), until) as stream:
            _ask(stream, CLIENT if match[1] else HEAD, f"{match[3]}:{match[4]}", until)
    except OtherServiceError as error:
        raise InputError(f"address={place}: expected a Ray cluster, but {error}; {PORTS}") from None
    except OSError as error:
        why = error.strerror or error
        raise InputError(
            f"address={place}: nothing answers there ({why}); is the cluster running, and is it the port of its head "
            "node?"
        ) from None
    return place


def last_line(message: object) -> str:
    """The last line of an error, where Ray has its message."""
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    return (lines or [type(message).__name__])[-1][:300].rstrip(".")


def _connected(host: str, port: int, until: float) -> socket.socket:
    """A connection; looking up a name has no time limit, so another thread does it."""
    found: list[socket.socket | OSError] = []

    def connect() -> None:
        try:
            found.append(socket.create_connection((host, port), timeout=max(0.01, until - time.monotonic())))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(max(0.01, until - time.monotonic()))
    stream = found[0] if found else TimeoutError(f"no connection within {REACH_SECONDS:g} s")
    if isinstance(stream, OSError):
        raise stream
    return stream


def _ask(stream: socket.socket, method: str, host: str, until: float) -> None:
    """Call a method without arguments; return if Ray answers, or if what comes leaves it open."""
    fields = {":method": "POST", ":scheme": "http", ":path": method, ":authority": host}
    fields |= {"content-type": "application/grpc", "te": "trailers"}
    headers = b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields.items())
    stream.sendall(
        PREFACE
        + _frame(SETTINGS, 0, 0, b"")
        + _frame(HEADERS, END_HEADERS, 1, headers)
        + _frame(DATA, END_STREAM, 1, bytes(5))
    )
    for number, (kind, flags, content) in enumerate(_frames(stream, until)):
        if number == 0:  # its SETTINGS; later ones need no answer from whoever sends nothing more
            stream.sendall(_frame(SETTINGS, ACK, 0, b""))
        if kind == HEADERS and GRPC not in content:
            raise OtherServiceError("a web server answers there")
        if kind == HEADERS and flags & END_STREAM and UNIMPLEMENTED in content:
            raise OtherServiceError("another gRPC service answers there")
        if kind in (RESET, GOAWAY):
            raise OtherServiceError("what answers there refuses the question")
        if kind in (DATA, HEADERS):
            return


def _frames(stream: socket.socket, until: float) -> Iterator[tuple[int, int, bytes]]:
    """Frames as they come until the time is up; the first one shows whether it is HTTP/2 at all."""
    unread, first = b"", True
    while True:
        while len(unread) >= 9:
            length, kind, flags = int.from_bytes(unread[:3], "big"), unread[3], unread[4]
            if first and (kind != SETTINGS or length % 6 or unread[5:9] != bytes(4)):
                web = unread.startswith((b"HTTP/", b"<"))
                raise OtherServiceError("a web server answers there" if web else "something else answers there")
            if length > MAX_FRAME:
                raise OtherServiceError("something else answers there")
            if len(unread) < 9 + length:
                break
            first = False
            yield kind, flags, unread[9 : 9 + length]
            unread = unread[9 + length :]
        left = until - time.monotonic()
        if left <= 0 and not first:
            return
        stream.settimeout(max(0.01, left))
        try:
            content = stream.recv(65536)
        except TimeoutError:
            content = b""
        if not content:
            if first:
                silent = f"what listens there says nothing within {REACH_SECONDS:g} s"
                raise OtherServiceError(silent if time.monotonic() >= until else "what listens there hangs up")
            return
        unread += content


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + content


def _text(text: str) -> bytes:
    """A string of fewer than 127 bytes as HPACK writes it."""
    return bytes([len(text)]) + text.encode()
