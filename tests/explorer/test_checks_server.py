"""Every check of the explorer's server on its own, asked without a socket: Host, Origin, headers, type and size."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("starlette", reason="the explorer needs the extra 'web'")

from polyrelu.explorer import application, server
from polyrelu.explorer.pages import policy
from polyrelu.explorer.parameters import PARAMETERS
from polyrelu.explorer.server import MAX_QUESTION, MAX_RECORDING, Guard, is_local
from polyrelu.explorer.sessions import SUPERSEDED

HOST = "127.0.0.1:8080"
KINDS = ("application/json", "application/json; charset=utf-8")


def ask(app, path="/", body=None, *, host=HOST, origin=None, kind=KINDS[0], method=None, parts=1):
    """Status, headers and text; ``body`` bytes or something JSON can hold, sent in so many parts."""
    headers = [(b"host", host.encode())] if host is not None else []
    headers += [(b"origin", origin.encode())] if origin is not None else []
    headers += [(b"content-type", kind.encode())] if kind is not None else []
    text = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    size = -(-len(text) // parts) or 1
    pieces = [text[i : i + size] for i in range(0, len(text), size)] or [b""]
    sent = [{"type": "http.request", "body": one, "more_body": True} for one in pieces]
    sent[-1]["more_body"] = False
    got = []

    async def receive():
        return sent.pop(0) if sent else {"type": "http.disconnect"}

    async def send(message):
        got.append(message)

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": ""}
    scope |= {"method": method or ("GET" if body is None else "POST"), "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "headers": headers, "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8080)}
    asyncio.run(app(scope, receive, send))
    start = next(one for one in got if one["type"] == "http.response.start")
    answer = b"".join(one.get("body", b"") for one in got if one["type"] == "http.response.body")
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, answer.decode()


@pytest.fixture(scope="module")
def app():
    return application()


@pytest.mark.parametrize(
    ("host", "good"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("127.0.0.1:1", True),
        ("localhost:65535", True),
        ("", False),
        ("127.0.0.2", False),
        ("localhost.example.org", False),
        ("127.0.0.1:", False),
        ("127.0.0.1:8o", False),
        ("127.0.0.1:٣", False),
        ("127.0.0.1:80:80", False),
        ("example.org:127", False),
        ("LOCALHOST", False),
    ],
)
def test_only_two_names_are_local(app, host, good):
    assert is_local(host) == good
    if host.isascii():
        assert (ask(app, host=host)[0] == 200) == good


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/claim/B4", "/flow", "/nothing"])
@pytest.mark.parametrize("host", [None, "example.org", "127.0.0.1.example.org"])
def test_without_its_own_name_nothing_is_answered(app, path, host):
    assert ask(app, path, host=host)[0] == 403


@pytest.mark.parametrize(
    ("origin", "good"),
    [
        (None, True),
        (f"http://{HOST}", True),
        ("http://127.0.0.1", False),
        ("http://localhost:8080", False),
        (f"https://{HOST}", False),
        ("null", False),
        ("", False),
        (f"http://{HOST}.example.org", False),
    ],
)
def test_an_origin_must_be_this_very_server(app, origin, good):
    assert (ask(app, origin=origin)[0] == 200) == good
    # and both are asked of every request: a good Origin does not excuse a foreign Host
    assert ask(app, host="example.org", origin=origin or "http://example.org")[0] == 403


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/nothing", "/flow"])
def test_every_answer_forbids_everything_else(app, path):
    headers = ask(app, path)[1]
    assert headers["content-security-policy"] == policy()
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert ask(app, path, host="example.org")[2] == "This page answers to its own address only."


def test_what_is_no_request_is_passed_on():
    seen = []

    async def inner(scope, receive, send):
        seen.append(scope["type"])

    asyncio.run(Guard(inner)({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]


@pytest.mark.parametrize("path", ["/flow", "/point", "/export"])
@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_only_json_is_read(app, path, kind):
    status, _, text = ask(app, path, {"tab": "tab-of-a-test"}, kind=kind)
    assert status == 422 and "content-type" in text


@pytest.mark.parametrize("kind", KINDS)
def test_json_is_read_with_and_without_a_charset(app, kind):
    assert json.loads(ask(app, "/point", {"tab": "tab-of-nobody"}, kind=kind)[2])["kind"] == "nothing"


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("path", ["/flow", "/point"])
def test_a_question_has_so_many_bytes_at_most(app, path, parts):
    def long(size):
        start, end = b'{"tab": "tab-of-nobody", "setting": {"x": 1}, "more": "', b'"}'
        return start + b"x" * (size - len(start) - len(end)) + end

    assert len(long(MAX_QUESTION)) == MAX_QUESTION
    assert "bytes" not in ask(app, path, long(MAX_QUESTION), parts=parts)[2]
    status, _, text = ask(app, path, long(MAX_QUESTION + 1), parts=parts)
    assert status == 422 and f"at most {MAX_QUESTION} bytes" in text


def test_a_recording_may_be_longer_but_not_endless(app, monkeypatch):
    assert ask(app, "/export", {"recorded": [{"kind": "x" * MAX_QUESTION}]})[0] == 200
    assert MAX_RECORDING <= 10**8
    assert server.json_body.__defaults__ == (MAX_QUESTION,)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"1", b'"text"', b"null", b"[" * 9000, b"\xff\xfe"])
@pytest.mark.parametrize("path", ["/flow", "/point", "/export"])
def test_anything_but_an_object_is_refused(app, path, text):
    status, _, answer = ask(app, path, text)
    assert status == 422 and json.loads(answer)["error"]


@pytest.mark.parametrize("recorded", [None, {}, "text", 1, [1], [{}, []], ["x"], [None]])
def test_a_recording_is_a_list_of_messages(app, recorded):
    assert ask(app, "/export", {"recorded": recorded})[0] == 422


@pytest.mark.parametrize("recorded", [b"1e999", b"-1e999", b"NaN"])
def test_numbers_that_json_does_not_have_are_refused(app, recorded):
    assert ask(app, "/export", b'{"recorded": [{"x": ' + recorded + b"}]}")[0] == 422


@pytest.mark.parametrize("tab", [None, 1, "short", "x" * 65, "UPPER-CASE", "../../../x", "tab of spaces", ["tab-of-x"]])
def test_tabs_are_named_by_the_rule(app, tab):
    before = set(app.state.sessions.open)
    assert ask(app, "/point", {"tab": tab})[0] == 422
    assert ask(app, "/flow", {"tab": tab, "setting": {}})[0] == 422
    assert set(app.state.sessions.open) == before


@pytest.mark.parametrize("setting", [None, [], "saved_run", 1, {"dim": 10**9}, {"unknown": 1}, {"p": "3"}])
def test_a_flow_starts_only_from_a_setting(app, setting):
    assert ask(app, "/flow", {"tab": "tab-of-settings", "setting": setting})[0] == 422


def test_a_point_is_about_the_flow_that_is_there():
    app = application()
    tab = app.state.sessions.session("tab-of-a-point")
    assert json.loads(ask(app, "/point", {"tab": "tab-of-a-point"})[2])["kind"] == "nothing"  # no recording yet
    tab.recording, tab.run = object(), 3
    assert json.loads(ask(app, "/point", {"tab": "tab-of-a-point", "run": 2})[2]) == SUPERSEDED
    app.state.sessions.open.clear()


@pytest.mark.parametrize("path", ["/flow", "/point", "/export"])
def test_questions_are_posted(app, path):
    assert ask(app, path, method="GET")[0] == 405


def test_the_page_is_told_every_limit_in_the_order_of_the_table():
    assert [row["name"] for row in server.about(None)["limits"]] == [limit.name for limit in PARAMETERS]
