"""The page in a real browser: every preset, sliders, time, drags, files, reload, two tabs, a server that goes away."""

import itertools
import json
import re
import threading
import time

import pytest
from PIL import Image
from waiting import LIMIT

import polyrelu
from polyrelu.explorer import frames
from polyrelu.explorer.parameters import Setting

pytestmark = pytest.mark.waits
TEXT = "body *:not(script, option, canvas, [type=range], .bar)"
SIZES = [(360, 740), (900, 800), (1400, 860)]


class Visit:
    """A page, what it complained about and what it asked for."""

    def __init__(self, context, address):
        self.context, self.page = context, context.new_page()
        self.trouble, self.asked, self.answered = [], [], []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("requestfinished", lambda request: self.answered.append(request))
        self.page.goto(address)

    def until(self, expression):
        """Wait for a condition (a policy that forbids eval forbids wait_for_function too)."""
        end = time.monotonic() + LIMIT
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, f"{expression}: {self.data()} {self.page.inner_text('#trouble')}"
            self.page.wait_for_timeout(40)
        return self

    def data(self):
        return json.loads(self.page.evaluate("JSON.stringify(document.body.dataset)"))

    def done(self):
        return self.until("document.body.dataset.state === 'done'")

    def slide(self, selector, value):
        write = "([s, v]) => { const e = document.querySelector(s); e.value = v; e.dispatchEvent(new Event('input')); }"
        self.page.evaluate(write, [selector, value])

    def note(self):
        return self.page.text_content("#plane .note")

    def at_end(self):
        """The last step is shown, and rests."""
        step = "document.querySelector('#clock').textContent.match(/step (\\d+) of \\1$/)"
        return self.until(f"{step} && document.querySelector('#play').getAttribute('aria-label') === 'Play'")

    def saved(self, selector, path):
        """The file that a button saves."""
        with self.page.expect_download() as saved:
            self.page.click(selector)
        saved.value.save_as(path)
        return path

    def picture(self, selector):
        """The colours of a canvas, to see whether it changed."""
        return self.page.evaluate("(s) => document.querySelector(s).toDataURL()", selector)

    def another(self, selector, before):
        """The colours of a canvas once they are not those before."""
        end = time.monotonic() + LIMIT
        while (now := self.picture(selector)) == before:
            assert time.monotonic() < end, f"{selector} does not change"
            self.page.wait_for_timeout(40)
        return now

    def turns(self, count=3):
        """Let the page draw so many times, if it wants to."""
        for _ in range(count):
            self.page.evaluate("new Promise((done) => requestAnimationFrame(done))")
        return self

    def still(self):
        """Wait until nothing is drawn any more."""
        end, drawn = time.monotonic() + LIMIT, None
        while drawn != (drawn := self.data()["drawn"]):
            assert time.monotonic() < end, "it never rests"
            self.turns()
        return self

    def looked_at(self, step):
        """Wait until the server has said how far the point holds at this step."""
        end = time.monotonic() + LIMIT
        while not any(one.url.endswith("/point") and one.post_data_json["frame"] == step for one in self.answered):
            assert time.monotonic() < end, f"nobody asked about step {step}"
            self.page.wait_for_timeout(40)
        return self.turns().still()


@pytest.fixture
def visit(browser, served):
    visits = []

    def go(fragment="", size=(1400, 860), address=None, moving=False, **settings):
        settings = {"reduced_motion": "no-preference" if moving else "reduce", **settings}  # drawing takes time
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
        visits.append(Visit(context, (address or served.address) + fragment))
        visits[-1].home = address or served.address
        return visits[-1]

    yield go
    for one in visits:
        assert one.trouble == []
        assert all(url.startswith((one.home, "data:", "blob:")) for url in one.asked)
        one.context.close()


SMALL = "#dim=20&samples=200&width=20&alpha=0.05"  # neurons collapse, and are soon proven


@pytest.fixture
def going(monkeypatch):
    """Set, flows go on; else they stand still after their sixth frame."""
    stream, going = frames.stream, threading.Event()

    def held(problem, send):
        told = []

        def slowly(message):
            send(message)
            told.append(message["kind"])
            while told.count("frame") > 5 and not going.is_set():
                send({"kind": "working"})
                time.sleep(0.01)

        return stream(problem, slowly)

    monkeypatch.setattr(frames, "stream", held)
    yield going
    going.set()


@pytest.fixture(scope="module")
def still(browser, served):
    """A page of the server on which nothing runs, for questions to its scripts."""
    context = browser.new_context()
    yield Visit(context, served.address + "claim/B4")
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "verdict", "low", "high"),
    [
        ("averages", "class averages", 0.38, 0.43),
        ("decouples", "single centres", 0.68, 0.71),
        ("large", "neither", 0.40, 0.60),
        ("fooled", "single centres", 0.68, 0.71),
        ("fine", "single centres", 0.50, 0.56),
        ("digits", "a mixture", 0.4, 0.9),
    ],
)
def test_presets_show_what_they_promise(visit, preset, verdict, low, high):
    one = visit(f"#preset={preset}").done().until("document.body.dataset.ball > 0")
    data = one.data()
    assert data["verdict"].startswith(verdict)
    assert low <= float(data["radius"]) <= high
    assert one.page.get_attribute(f"[data-preset={preset}]", "aria-pressed") == "true"
    assert one.still().page.inner_text("#words h2")
    for name in ("#sphere canvas", "#flat", "#toward", "#timeline canvas", "#curve canvas", "#matrix canvas"):
        assert len(one.picture(name)) > 2000, name
    if preset == "fooled":
        assert "no break found" in one.page.inner_text("#plane .note")


@pytest.mark.slow
def test_dragging_p_from_1_to_3_takes_the_same_neurons_from_the_averages_to_the_centres(visit):
    one = visit("#dim=20&samples=200&width=30", moving=True).done().at_end().until("document.body.dataset.ball > 0")
    assert one.data()["verdict"] == "class averages"
    ball = float(one.data()["ball"])
    for p in (1.5, 2, 2.5, 3):
        one.slide("#p", p)
        one.until(f"document.querySelector('#power output').textContent === '{p:.2f}'").turns()
    one.until("location.hash.includes('p=3')").done().until("document.body.dataset.verdict === 'single centres'")
    one.until(f"document.body.dataset.ball > {ball + 0.2}")
    assert 0.64 < float(one.data()["radius"]) < 0.71
    assert one.page.inner_text("#power output") == "3.00"
    assert "p=3" in one.page.evaluate("location.hash")


@pytest.mark.slow
def test_the_numbers_shown_are_those_of_the_library(visit):
    one = visit(SMALL + "&p=3&seed=5").done()
    setting = Setting(dim=20, samples=200, width=20, alpha=0.05, p=3, seed=5)
    mixture = polyrelu.OrthonormalMixture(setting.dim, setting.positive, setting.negative, setting.alpha)
    net = polyrelu.PolyReLUNet(20, 20, 3, init="balanced", scale=setting.scale, seed=5)
    run = polyrelu.flow(net, mixture.sample(200, 5), loss="exp", until=1e-2)
    test = mixture.sample(60, 6)
    median = polyrelu.curve(polyrelu.bracket(run.net, test.rows(), test.y, tol=1e-3)).median_radius
    assert float(one.data()["radius"]) == pytest.approx(median.lower, rel=0.01)
    one.slide("#time", 1000)
    one.until(f"document.querySelector('#clock').textContent.includes('t = {float(f'{run.time:.3g}'):g}')")


GLIMPSE = """async () => {
  const play = document.querySelector("#play"), clock = document.querySelector("#clock");
  play.click();
  while (clock.textContent.includes("step 0 of")) await new Promise((done) => requestAnimationFrame(done));
  play.click();
}"""


@pytest.mark.slow
def test_time_can_be_moved_and_played(visit):
    one = visit(SMALL, moving=True).done().at_end()  # it has played
    end = one.picture("#sphere canvas")
    one.slide("#time", 0)
    one.until("document.querySelector('#clock').textContent.includes('step 0 of')")
    start = one.picture("#sphere canvas")
    assert start != end
    one.page.evaluate(GLIMPSE)
    stands = one.turns(1).page.inner_text("#clock")
    assert one.turns(10).page.inner_text("#clock") == stands
    box = one.page.locator("#timeline canvas").bounding_box()
    one.page.mouse.click(box["x"] + box["width"] - 12, box["y"] + box["height"] / 2)
    one.until("Number(document.querySelector('#time').value) > 950")


@pytest.mark.slow
def test_the_sphere_turns_and_the_point_is_dragged(visit):
    one = visit(SMALL + "&p=3").done().until("document.body.dataset.ball > 0")
    one.at_end()  # nothing moves, and yet it is not the start that is shown
    before = one.picture("#sphere canvas")
    box = one.page.locator("#sphere canvas").bounding_box()
    one.page.mouse.move(box["x"] + 80, box["y"] + 80)
    one.page.mouse.down()
    one.page.mouse.move(box["x"] + 160, box["y"] + 60, steps=4)
    one.page.mouse.up()
    one.another("#sphere canvas", before)
    turned = one.still().picture("#sphere canvas")
    one.page.focus("#sphere canvas")
    one.page.keyboard.press("ArrowLeft")
    one.another("#sphere canvas", turned)
    ball = one.data()["ball"]
    one.page.focus("#flat")
    for _ in range(5):
        one.page.keyboard.press("ArrowLeft")  # towards the origin: the ball shrinks
    one.until(f"document.body.dataset.ball && document.body.dataset.ball < {float(ball) - 0.02}")
    box = one.page.locator("#flat").bounding_box()
    one.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    one.page.mouse.down()
    one.page.mouse.move(box["x"] + 20, box["y"] + 20, steps=3)  # into the other class
    one.page.mouse.up()
    one.until("document.querySelector('#plane .note').textContent.includes('misclassified')")


@pytest.mark.slow
def test_a_sentence_tells_what_is_refused(visit):
    one = visit(SMALL).done()
    one.page.click("#more summary")
    one.page.fill("#set-dim", "1000000000")
    one.page.press("#set-dim", "Enter")
    one.until("!document.querySelector('#trouble').hidden")
    assert "dim=1000000000: expected a whole number from 2 to 1000" in one.page.inner_text("#trouble")
    one.trouble.clear()  # the browser notes an answer of 422
    one.page.fill("#set-dim", "14")
    one.page.press("#set-dim", "Enter")
    one.until("document.querySelector('#trouble').hidden").done()


@pytest.mark.slow
def test_a_picture_holds_all_views_though_they_are_scrolled(visit, tmp_path):
    one = visit(SMALL + "&p=3", size=(1000, 600)).done().until("document.body.dataset.ball > 0").still()
    one.page.evaluate("document.querySelector('#views').scrollTo(0, 300)")
    with Image.open(one.saved("#png", tmp_path / "view.png")) as picture:
        width, height = picture.size
        colours = [
            len(picture.convert("RGB").crop((0, y, width, y + 200)).getcolors(10**6)) for y in (100, height - 250)
        ]
    wide, high = one.page.evaluate(
        "[document.querySelector('#views').clientWidth, document.querySelector('#views').scrollHeight]"
    )
    assert abs(width - wide) < 20
    assert abs(height - high) < 150
    assert min(colours) > 20  # the first view and the last


@pytest.mark.slow
def test_a_file_opens_as_it_was_saved_and_plays_alone(visit, tmp_path):
    one = visit("#preset=fooled").done().until("document.body.dataset.ball > 0")
    one.page.select_option("#axes select >> nth=2", "4")
    one.page.focus("#sphere canvas")
    one.page.keyboard.press("ArrowLeft")
    one.slide("#time", 600)
    one.until("!document.querySelector('#clock').textContent.match(/step (\\d+) of \\1$/)")
    one.until("/no break found|misclassified/.test(document.querySelector('#plane .note').textContent)")
    one.until("!document.querySelector('#plane .note').textContent.includes('at step')")
    path = one.saved("#html", tmp_path / "alone.html")
    text = path.read_text()
    assert "http://" not in text
    assert "https://" not in text
    alone = visit(address=path.as_uri()).done().until("document.body.dataset.drawn > 0")
    assert alone.page.get_attribute("[data-preset=fooled]", "aria-pressed") == "true"
    for selector in ("#clock", "#plane .note", "#words", "#verdict", "#axes"):
        assert alone.page.text_content(selector) == one.page.text_content(selector).replace("\n", ""), selector
    assert {name: alone.data()[name] for name in ("verdict", "radius", "ball")} == {
        name: one.data()[name] for name in ("verdict", "radius", "ball")
    }
    alone.slide("#time", 0)
    alone.until("document.querySelector('#clock').textContent.includes('step 0 of')")
    assert {url for url in alone.asked if not url.startswith(("data:", "blob:"))} == {path.as_uri()}


@pytest.mark.slow
def test_a_file_saved_while_a_flow_streams_holds_that_flow_alone(visit, tmp_path, going):
    going.set()
    one = visit(SMALL + "&p=3").done().until("document.body.dataset.ball > 0")
    going.clear()
    one.page.click("[data-preset=averages]")
    one.until("/step \\d of 5$/.test(document.querySelector('#clock').textContent)")
    path = one.saved("#html", tmp_path / "half.html")
    recorded = json.loads(re.search(r'id="about">(.*?)</script>', path.read_text(), re.S)[1])["recorded"]
    kinds = [message["kind"] for message in recorded]
    assert kinds.count("start") == 1
    assert kinds.count("frame") == 6
    assert "ready" not in kinds and "point" not in kinds  # of the flow before there were replies
    going.set()
    one.done()
    alone = visit(address=path.as_uri()).done().until("document.body.dataset.drawn > 0")
    assert alone.note() == "no radius was saved for this point"
    assert len(alone.picture("#flat")) > 2000


EMPTY = """(s) => {
  const canvas = document.querySelector(s), { width, height } = canvas;
  return canvas.toDataURL() === Object.assign(document.createElement("canvas"), { width, height }).toDataURL();
}"""


@pytest.mark.slow
def test_no_ball_is_shown_for_a_net_or_a_point_it_was_not_proven_for(visit):
    one = visit(SMALL + "&p=3").done().until("document.body.dataset.ball > 0")
    assert not one.page.evaluate(EMPTY, "#toward")
    one.page.route("**/point", lambda route: None)  # the server thinks
    for change in (lambda: one.page.press("#flat", "ArrowLeft"), lambda: one.slide("#p", 1)):
        change()
        one.until("document.body.dataset.ball === ''").until("document.body.dataset.state === 'done'")
        assert one.note() == "computing…"
        assert one.page.evaluate(EMPTY, "#toward")
    one.page.unroute("**/point")  # and answers
    one.until("document.body.dataset.verdict === 'class averages' && document.body.dataset.ball > 0")
    assert "the point holds to" in one.note()


@pytest.mark.slow
def test_a_ball_of_another_step_is_said_to_be_of_that_step(visit, monkeypatch):
    monkeypatch.setattr(frames, "MAX_KEPT_NUMBERS", 20 * 20 * 4)  # few moments are kept
    one = visit(SMALL + "&p=3").done().at_end().until("document.body.dataset.ball > 0")
    assert "at step" not in one.note()
    one.slide("#time", 920)
    one.until("document.querySelector('#plane .note').textContent.includes('at step')")
    shown = int(re.search(r"step (\d+) of", one.still().page.text_content("#clock"))[1])
    one.looked_at(shown)  # it has rested, and been asked for
    assert int(re.search(r"at step (\d+)", one.note())[1]) != shown


@pytest.mark.slow
def test_sphere_axes_follow_the_dimension(visit):
    one = visit("#positive=1&negative=1&dim=3&samples=40&width=10").done()
    one.page.click("#more summary")
    for dim, axes, words in ((3, 3, "as they are"), (50, 2, "projected on two centres"), (3, 3, "as they are")):
        if one.page.input_value("#set-dim") != str(dim):
            one.page.fill("#set-dim", str(dim))
            one.page.press("#set-dim", "Enter")
        one.until(f"document.querySelector('#sphere .note').textContent.includes('{words}')").done()
        assert one.page.locator("#axes select").count() == axes
    assert one.page.inner_text("#words h2") == "One sub-class in each class"


@pytest.mark.slow
def test_an_own_run_shows_its_final_net_at_every_time(visit, start, folder):
    from polyrelu.explorer import saved_run

    running = start(saved=saved_run.read_run(folder))
    one = visit(address=running.address).done().at_end().until("document.body.dataset.ball > 0")
    assert one.page.inner_text("#words h2") == "Your own run"
    one.still()
    names = ("#sphere canvas", "#flat", "#toward", "#matrix canvas")
    end, note = [one.picture(name) for name in names], one.note()
    one.slide("#time", 300)
    one.until("!document.querySelector('#clock').textContent.match(/step (\\d+) of \\1$/)")
    one.still()
    assert [one.picture(name) for name in names] == end
    assert one.note() == note
    one.slide("#p", 1)
    one.until("document.body.dataset.verdict === 'class averages'").done()
    assert "dim=12" in one.page.evaluate("location.hash")
    one.page.click("[data-preset=saved-run]")
    one.until("document.querySelector('#words h2').textContent === 'Your own run'").done()
    assert one.page.evaluate("location.hash") == ""


@pytest.mark.slow
def test_a_server_that_stops_while_nothing_runs_is_said_and_made_good(browser, start):
    running = start()
    context = browser.new_context()
    one = Visit(context, running.address + SMALL + "&p=3").done().until("document.body.dataset.ball > 0")
    running.stop()
    one.page.press("#flat", "ArrowLeft")
    one.until("!document.querySelector('#trouble').hidden")
    assert "The server has stopped" in one.page.inner_text("#trouble")
    again = start(port=running.port)
    one.until("document.querySelector('#trouble').hidden && document.body.dataset.ball > 0").done()
    again.stop()
    third = start(port=running.port)  # nobody noticed, and it knows nothing
    one.page.press("#flat", "ArrowLeft")
    one.turns().until("document.body.dataset.state === 'done' && document.body.dataset.ball > 0")
    assert third.app.state.sessions.open
    assert all("ERR_" in text for text in one.trouble)
    context.close()


WORDS = """async ([start, end, radius]) => {
  const { write } = await import("/static/words.js"), box = document.createElement("div");
  const data = { positive: 3, negative: 3, alpha: 0.1, labels: "coarse", data: "mixture" };
  const setting = { p: 1, log10_scale: -7, ...data, ...start }, robust = radius ? { median: [radius, radius] } : null;
  const usual = { verdict: "class averages", status: "LOSS", accuracy: 1, aligned: 3, evaluations: 1000, message: "!" };
  write(box, { start: { setting }, end: end && { ...usual, ...end }, robust }, false);
  return box.textContent;
}"""
SINGLE = {"verdict": "single centres"}


@pytest.mark.parametrize(
    ("start", "end", "radius", "said", "not_said"),
    [
        ({}, None, 0, "Training", "learned"),
        ({}, {}, 0.4, "1/√K", "√2/2"),
        ({"p": 1.5}, {}, 0.4, "class averages", "1/√K"),
        ({"alpha": 0.9}, {"accuracy": 0.9}, 0.2, "class averages", "right on every"),
        ({"p": 3}, SINGLE, 0.69, "nearly √2/2", "Below p = 2"),
        ({"p": 1.5}, SINGLE, 0.6, "Below p = 2", "√2/2"),
        ({"p": 3, "alpha": 0.6}, SINGLE, 0.5, "so much noise", "√2/2"),
        ({"p": 2}, {"verdict": "a mixture of both"}, 0.5, "Between", "outside the span"),
        ({"p": 2}, {"verdict": "neither: most"}, 0.5, "outside the span", "threshold"),
        ({"p": 2}, {"verdict": "nothing: no"}, 0.5, "no neuron that counts", "threshold"),
        ({"labels": "fine"}, SINGLE, 0.5, "1/√(1 + m)", "class labels"),
        ({"labels": "fine", "p": 3}, SINGLE, 0.7, "with p = 3", "√2/2"),
        ({"labels": "fine", "data": "digits"}, {}, 0.5, "is trained to name the digit", "does not know"),
        ({"data": "digits"}, {}, 0.5, "does not know", "is trained to name"),
        ({"log10_scale": -0.3, "p": 3}, {"aligned": None}, 0.5, "p = 3 does not", "p = 1"),
        ({"log10_scale": -0.3}, {"aligned": 0}, 0.5, "class averages", "large start"),
        ({"positive": 1, "negative": 1}, {"status": "BUDGET", "verdict": "undefined"}, 0.5, "1000 passes", "to choose"),
        ({"positive": 1, "negative": 1}, {"verdict": "undefined: every"}, 0.7, "nothing to choose", "passes"),
    ],
)
def test_words_are_true_of_what_is_set_and_found(still, start, end, radius, said, not_said):
    text = still.page.evaluate(WORDS, [start, end, radius])
    assert said in text
    assert not_said not in text


def test_proven_radii_are_never_rounded_up_nor_found_ones_down(still):
    script = "async () => { const { above, below } = await import('/static/canvas.js'); return [0.29, 0.6999, 0.7001]"
    found = still.page.evaluate(script + ".map((one) => [below(one, 2), above(one, 2)]); }")
    assert found == [["0.29", "0.29"], ["0.69", "0.70"], ["0.70", "0.71"]]


@pytest.mark.slow
def test_reloading_shows_the_same_again(visit):
    one = visit(SMALL).done()
    one.slide("#p", 3)
    one.until("document.body.dataset.verdict === 'single centres'").done()
    radius = one.data()["radius"]
    one.page.reload()
    one.done()
    assert one.page.inner_text("#power output") == "3.00"
    assert one.data()["radius"] == radius


@pytest.mark.slow
def test_two_tabs_do_not_disturb_each_other(visit):
    one, two = visit(SMALL + "&p=1"), visit(SMALL + "&p=3")
    one.done()
    two.done()
    assert [tab.data()["verdict"] for tab in (one, two)] == ["class averages", "single centres"]
    two.slide("#p", 1)
    two.until("document.body.dataset.verdict === 'class averages'").done()
    assert one.data()["state"] == "done"


@pytest.mark.slow
def test_many_rapid_moves_end_at_the_last(visit):
    one = visit(SMALL).done()
    box = one.page.locator("#p").bounding_box()
    x, y = (lambda share: box["x"] + share * box["width"]), box["y"] + box["height"] / 2
    one.page.mouse.move(x(0.02), y)
    one.page.mouse.down()
    for k in range(120):
        one.page.mouse.move(x(0.1 + 0.8 * abs(k % 40 - 20) / 20), y)
    one.page.mouse.move(x(0.5), y)
    one.page.mouse.up()
    last = float(one.page.inner_text("#power output"))
    assert 2.9 <= last <= 3.1
    one.until(f"/[#&]p={last:g}(&|$)/.test(location.hash)").done()
    one.until("document.body.dataset.verdict === 'single centres'")
    assert float(one.page.inner_text("#power output")) == last


@pytest.mark.slow
def test_a_server_that_stops_in_mid_stream_is_said_and_when_it_is_back_the_page_goes_on(browser, start, going):
    running = start()
    context = browser.new_context()
    one = Visit(context, running.address + "#log10_scale=-300")
    one.until("document.body.dataset.frames > 3")
    running.stop()
    one.until("!document.querySelector('#trouble').hidden")
    assert "The server has stopped" in one.page.inner_text("#trouble")
    assert one.page.inner_text("#clock")  # what was received is still there
    one.slide("#p", 3)
    again = start(port=running.port)
    one.until("document.querySelector('#trouble').hidden && document.body.dataset.state === 'running'")
    going.set()
    one.slide("#p", 3)
    one.until("document.body.dataset.verdict === 'single centres'")
    assert all("ERR_" in text for text in one.trouble)  # only the browser's own notes on a server that was not there
    context.close()
    again.stop()


@pytest.mark.slow
def test_nothing_sticks_out_and_all_can_be_read(visit, contrasts):
    one = visit(SMALL + "&positive=6&negative=4").done()
    out = "[...document.querySelectorAll('button, select, figure, canvas, p, output')].filter((e) => !e.hidden && "
    out += "e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))"
    ground = "getComputedStyle(document.body).backgroundColor"
    for size, scheme in itertools.product(SIZES, ["light", "dark"]):
        one.page.set_viewport_size({"width": size[0], "height": size[1]})
        one.page.emulate_media(color_scheme=scheme)
        assert one.page.evaluate("document.documentElement.scrollWidth") <= size[0], size
        assert one.page.evaluate(out) == [], size
        for stale in (False, True):  # a headline that is being replaced can be read too
            one.page.evaluate("(stale) => document.querySelector('#verdict').classList.toggle('stale', stale)", stale)
            assert {name for name, ratio in one.page.evaluate(contrasts, TEXT) if ratio < 4.5} == set(), (size, scheme)
        assert one.page.evaluate("getComputedStyle(document.querySelector('#verdict')).opacity") == "1"
        assert one.page.evaluate(ground) == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 23, 26)")
    one.page.click("#theme")
    assert one.page.evaluate(ground) == "rgb(255, 255, 255)"
    touch = "(s) => getComputedStyle(document.querySelector(s)).touchAction"  # a finger scrolls past what does not turn
    names = ("#sphere canvas", "#flat", "#toward", "#timeline canvas", "#curve canvas", "#matrix canvas")
    assert [one.page.evaluate(touch, name) for name in names] == ["none", "none", "auto", "pan-y", "auto", "auto"]


@pytest.mark.slow
def test_everything_is_reached_by_keyboard(visit):
    one = visit(SMALL).done()
    seen = set()
    for _ in range(40):
        one.page.keyboard.press("Tab")
        seen.add(one.page.evaluate("document.activeElement.id || document.activeElement.dataset.preset || ''"))
    assert {"p", "play", "time", "png", "html", "theme", "averages", "digits", "flat"} <= seen
    one.page.click("#more summary")
    one.page.press("[data-name=positive]", "ArrowRight")  # a slider moves by its own step
    assert one.page.input_value("#set-positive") == "4"
    assert one.page.get_attribute("[data-name=positive]", "aria-valuetext") == "4"
    one.page.press("#p", "End")
    one.until("document.querySelector('#power output').textContent === '5.00'").done()
