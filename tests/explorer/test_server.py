"""The server answers to its own address, politely refuses what is too much, and really stops what is cancelled."""

import asyncio
import gc
import http.client
import json
import math
import threading
import time

import pytest
from waiting import LIMIT, wait_for

from polyrelu.explorer import frames
from polyrelu.explorer.sessions import MAX_SESSIONS, SUPERSEDED, Session, Sessions

HOSTS = ["127.0.0.1", "localhost", "127.0.0.1:{port}", "localhost:{port}"]
FOREIGN = ["example.org", "127.0.0.1.example.org", "127.0.0.1:80@example.org", "", "[::1]", "0.0.0.0", "localhost:8o"]
pytestmark = pytest.mark.waits
QUESTION = {"tab": "tab-of-a-test", "frame": 0, "centres": [0, 3], "point": [1, 0], "label": 1, "pgd": 0}


@pytest.mark.parametrize("host", HOSTS)
def test_its_own_names_are_answered(served, host):
    status, headers, text = served.ask("/", Host=host.format(port=served.port))
    assert status == 200
    assert "See the neurons choose" in text
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/claim/B4"])
@pytest.mark.parametrize("host", FOREIGN)
def test_foreign_names_are_refused(served, host, path):
    assert served.ask(path, Host=host)[0] == 403


@pytest.mark.parametrize("origin", ["https://example.org", "null", "http://localhost:1", "http://127.0.0.1"])
def test_foreign_origins_are_refused(served, origin):
    assert served.ask("/flow", {"tab": "tab-of-a-test", "setting": {}}, Origin=origin)[0] == 403
    assert served.ask("/", Origin=f"http://127.0.0.1:{served.port}")[0] == 200


def test_it_listens_on_loopback_only(served):
    assert served.socket.getsockname()[0] == "127.0.0.1"


def test_too_large_a_dimension_is_politely_refused(served):
    status, _, text = served.ask("/flow", {"tab": "tab-of-a-test", "setting": {"dim": 10**9}})
    assert status == 422
    expected = "dim=1000000000: expected a whole number from 2 to 1000, for the page; polyrelu flow takes larger ones."
    assert json.loads(text)["error"] == expected


@pytest.mark.parametrize("body", [[], "text", {"tab": "x", "setting": {}}, {"tab": "../../../x", "setting": {}}, {}])
def test_odd_requests_are_refused(served, body):
    assert served.ask("/flow", body)[0] == 422


def test_a_form_of_another_page_cannot_start_anything(served):
    asked = {"tab": "tab-of-a-test", "setting": {}}
    assert served.ask("/flow", asked, Content_Type="text/plain")[0] == 422
    assert served.ask("/flow", {**asked, "more": "x" * 20_000})[0] == 422


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/x"])
def test_nothing_else_is_served(served, path):
    assert served.ask(path)[0] == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"centres": [0, 0]},
        {"centres": [0, 99]},
        {"centres": [True, 2]},
        {"point": [1e9, 0]},
        {"point": [math.nan, 0]},
        {"point": [0, -math.inf]},
        {"point": ["1", 0]},
        {"point": [1]},
        {"frame": -1},
        {"label": 0},
        {"pgd": -1},
    ],
)
def test_odd_points_are_refused(served, wrong):
    if (
        "tab-of-a-test" not in served.app.state.sessions.open
        or not served.app.state.sessions.open["tab-of-a-test"].recording
    ):
        served.flow()
    assert served.ask("/point", QUESTION)[0] == 200
    status, _, text = served.ask("/point", {**QUESTION, **wrong})
    assert status == 422
    assert json.loads(text)["error"].startswith(f"{next(iter(wrong))}=")


def test_a_point_before_any_flow_is_nothing(served):
    status, _, text = served.ask("/point", {**QUESTION, "tab": "another-tab"})
    assert (status, json.loads(text)["kind"]) == (200, "nothing")
    assert "another-tab" not in served.app.state.sessions.open  # asking does not push others out


@pytest.mark.slow
def test_a_point_of_an_earlier_flow_is_not_answered_for_a_later_one(served):
    runs = [next(m["run"] for m in served.flow("tab-of-two-flows") if m["kind"] == "ready") for _ in range(2)]
    kinds = [served.ask("/point", {**QUESTION, "tab": "tab-of-two-flows", "run": run})[2] for run in runs]
    assert [json.loads(text)["kind"] for text in kinds] == ["superseded", "point"]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_recording_that_is_no_json_is_refused(served, number):
    assert served.ask("/export", {"recorded": [{"kind": "view", "time": number}]})[0] == 422


@pytest.mark.slow
def test_a_flow_is_told_from_start_to_end(served):
    kinds = [message["kind"] for message in served.flow(p=3)]
    assert kinds[:3] == ["begun", "start", "frame"]
    assert kinds[-1] == "done"
    assert kinds.index("end") < kinds.index("ready") < kinds.index("robust")


def test_claims_have_their_page(served):
    status, _, text = served.ask("/claim/B4")
    assert status == 200
    assert "polyrelu claims run B4" in text
    assert "<b>reproduced</b>" in text
    assert served.ask("/claim/<script>")[0] in (404, 422)


def flows():
    return [thread for thread in threading.enumerate() if thread.name == "explorer-flow"]


def begin(served, tab, **setting):
    """Start a flow and read its first line only."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT)
    body = json.dumps({"tab": tab, "setting": setting})
    connection.request("POST", "/flow", body, {"Content-Type": "application/json"})
    return connection, connection.getresponse()


def rest(others=0):
    """Wait until no flow but ``others`` is under way."""
    wait_for(lambda: len(flows()) <= others)
    return flows()


LONG = {"width": 100}


@pytest.fixture
def endless(monkeypatch):
    """A flow of ``LONG`` never ends by itself, only when it is stopped."""
    stream = frames.stream

    def held(problem, send):
        while problem.setting.width == LONG["width"]:
            send({"kind": "frame"})
            time.sleep(0.01)
        return stream(problem, send)

    monkeypatch.setattr(frames, "stream", held)


def test_whoever_goes_away_stops_the_work(served, endless):
    connection, answer = begin(served, "tab-that-leaves", **LONG)
    for _ in range(4):
        assert answer.readline()
    assert len(flows()) == 1
    answer.close()
    connection.close()
    assert rest() == []


@pytest.mark.slow
def test_another_flow_of_the_same_tab_stops_the_first_but_not_another_tab_s(served, endless):
    (one, first), (two, second) = begin(served, "tab-of-the-one", **LONG), begin(served, "tab-of-the-two", **LONG)
    first.readline(), second.readline()
    messages = served.flow("tab-of-the-one")
    assert messages[-1]["kind"] == "done"
    assert b'"done"' not in first.read()  # it ended early
    assert len(rest(others=1)) == 1
    two.close(), second.close(), one.close()
    assert rest() == []


@pytest.mark.slow
def test_a_hundred_rapid_starts_leave_no_thread_and_no_recording_behind(served):
    from polyrelu.explorer.frames import Recording

    open_ = [begin(served, "tab-in-a-hurry", p=1 + 0.04 * k) for k in range(100)]
    messages = served.flow("tab-in-a-hurry")
    assert messages[-1]["kind"] == "done"
    for connection, answer in open_:
        answer.close()
        connection.close()
    assert rest() == []
    gc.collect()
    kept = [one for one in gc.get_objects() if type(one) is Recording]
    assert len(kept) <= len(served.app.state.sessions.open)


class Inside:
    """Work that counts how many do it at once, and looks up only when all have been asked for."""

    def __init__(self):
        self.now = self.most = self.times = 0
        self.begun, self.all = threading.Event(), threading.Event()

    def __call__(self, send):
        self.now, self.times = self.now + 1, self.times + 1
        self.most = max(self.most, self.now)
        self.begun.set()
        try:
            assert self.all.wait(LIMIT)
            send({"kind": "frame"})
            return {"kind": "point"}
        finally:
            self.now -= 1


def test_no_more_than_one_flow_of_a_tab_computes():
    inside = Inside()

    async def hurry():
        session = Session()
        for _ in range(30):
            job = session.start(inside)
            await asyncio.to_thread(inside.begun.wait, LIMIT)  # the first one
        inside.all.set()
        return [json.loads(line)["kind"] async for line in job.lines()]

    assert asyncio.run(hurry()) == ["begun", "frame", "done"]
    assert inside.most == 1
    assert inside.times == 2  # those that waited and were stopped never began


def test_no_more_than_one_point_of_a_tab_computes_and_the_newest_wins():
    inside = Inside()

    async def hurry():
        session, asked = Session(), []
        for _ in range(30):
            asked.append(asyncio.create_task(session.answer(inside)))
            await asyncio.sleep(0)
            await asyncio.to_thread(inside.begun.wait, LIMIT)
        inside.all.set()
        return await asyncio.gather(*asked)

    *before, last = asyncio.run(hurry())
    assert last == {"kind": "point"}
    assert before == [SUPERSEDED] * 29
    assert inside.most == 1
    assert inside.times == 2


def test_many_tabs_are_forgotten():
    sessions = Sessions()
    for k in range(20):
        sessions.session(f"tab-number-{k}")
    assert list(sessions.open) == [f"tab-number-{k}" for k in range(20 - MAX_SESSIONS, 20)]


@pytest.mark.slow
def test_pages_at_rest_make_room_and_pages_at_work_do_not(start, monkeypatch):
    def slow(problem, send):
        while True:
            send({"kind": "working"})
            time.sleep(0.02)

    running = start()
    running.flow("tab-at-rest")
    monkeypatch.setattr(frames, "stream", slow)
    open_ = [begin(running, f"tab-number-{k}") for k in range(MAX_SESSIONS)]
    assert all(b"begun" in answer.readline() for _, answer in open_)
    assert list(running.app.state.sessions.open) == [f"tab-number-{k}" for k in range(MAX_SESSIONS)]
    status, _, text = running.ask("/flow", {"tab": "tab-too-many", "setting": {}})
    assert status == 422
    assert "8 pages at work already" in json.loads(text)["error"]
    assert len(flows()) == MAX_SESSIONS  # nobody was cut off
    for one in open_.pop():
        one.close()
    assert len(rest(others=MAX_SESSIONS - 1)) == MAX_SESSIONS - 1
    connection, answer = begin(running, "tab-that-fits")
    assert b"begun" in answer.readline()
    for one in (connection, answer, *(one for pair in open_ for one in pair)):
        one.close()
    running.stop()
    assert rest() == []


@pytest.mark.slow
def test_the_server_ends_although_a_flow_is_under_way(start, endless):
    running = start()
    connection, answer = begin(running, "tab-to-the-end", **LONG)
    answer.readline()
    running.stop()
    answer.close()
    connection.close()
    assert rest() == []
