"""The page in a real browser: every preset, sliders, time, drags, files, reload, two tabs, a server that goes away."""

import json
import time

import pytest

import polyrelu
from polyrelu.explorer.limits import Setting

TEXT = "body *:not(script, option, canvas)"
SIZES = [(360, 740), (900, 800), (1400, 860)]


class Visit:
    """A page, what it complained about and what it asked for."""

    def __init__(self, context, address):
        self.context, self.page = context, context.new_page()
        self.trouble, self.asked = [], []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    def until(self, expression, seconds=60):
        """Wait for a condition (a policy that forbids eval forbids wait_for_function too)."""
        end = time.monotonic() + seconds
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

    def picture(self, selector):
        """The colours of a canvas, to see whether it changed."""
        return self.page.evaluate("(s) => document.querySelector(s).toDataURL()", selector)


@pytest.fixture
def visit(browser, served):
    visits = []

    def go(fragment="", size=(1400, 860), address=None, **settings):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
        visits.append(Visit(context, (address or served.address) + fragment))
        return visits[-1]

    yield go
    for one in visits:
        assert one.trouble == []
        assert all(url.startswith((served.address, "data:", "blob:", "file:")) for url in one.asked)
        one.context.close()


SMALL = "#dim=12&samples=60&width=16"


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
    assert one.page.inner_text("#words h2")
    for name in ("#sphere canvas", "#flat", "#toward", "#timeline canvas", "#curve canvas", "#matrix canvas"):
        assert len(one.picture(name)) > 2000, name
    if preset == "fooled":
        assert "no break found" in one.page.inner_text("#plane .note")


def test_dragging_p_from_1_to_3_takes_the_same_neurons_from_the_averages_to_the_centres(visit):
    one = visit("").done().until("document.body.dataset.ball > 0")
    assert one.data()["verdict"] == "class averages"
    ball = float(one.data()["ball"])
    for p in (1.5, 2, 2.5, 3):
        one.slide("#p", p)
        one.page.wait_for_timeout(100)
    one.until("document.body.dataset.verdict === 'single centres'").done()
    one.until(f"document.body.dataset.ball > {ball + 0.2}")
    assert 0.68 < float(one.data()["radius"]) < 0.71
    assert one.page.inner_text("#power output") == "3.00"
    assert "p=3" in one.page.evaluate("location.hash")


def test_the_numbers_shown_are_those_of_the_library(visit):
    one = visit(SMALL + "&p=3&seed=5").done()
    setting = Setting(dim=12, samples=60, width=16, p=3, seed=5)
    mixture = polyrelu.OrthonormalMixture(setting.dim, setting.positive, setting.negative, setting.alpha)
    net = polyrelu.PolyReLUNet(12, 16, 3, init="balanced", scale=setting.scale, seed=5)
    run = polyrelu.flow(net, mixture.sample(60, 5), loss="exp", until=1e-2)
    test = mixture.sample(60, 6)
    median = polyrelu.curve(polyrelu.bracket(run.net, test.rows(), test.y, tol=1e-3)).median_radius
    assert float(one.data()["radius"]) == pytest.approx(median.lower, rel=0.01)
    one.page.evaluate("document.querySelector('#time').value = 1000")
    one.page.dispatch_event("#time", "input")
    one.until(f"document.querySelector('#clock').textContent.includes('t = {float(f'{run.time:.3g}'):g}')")


def test_time_can_be_moved_and_played(visit):
    one = visit(SMALL).done()
    one.until("document.querySelector('#play').getAttribute('aria-label') === 'Play'")  # has played to the end
    end = one.picture("#sphere canvas")
    one.slide("#time", 0)
    one.until("document.querySelector('#clock').textContent.includes('step 0 of')")
    start = one.picture("#sphere canvas")
    assert start != end
    one.page.click("#play")
    one.until("!document.querySelector('#clock').textContent.includes('step 0 of')")
    one.page.click("#play")
    stands = one.page.inner_text("#clock")
    one.page.wait_for_timeout(200)
    assert one.page.inner_text("#clock") == stands
    box = one.page.locator("#timeline canvas").bounding_box()
    one.page.mouse.click(box["x"] + box["width"] - 12, box["y"] + box["height"] / 2)
    one.until("Number(document.querySelector('#time').value) > 950")


def test_the_sphere_turns_and_the_point_is_dragged(visit):
    one = visit(SMALL + "&p=3", reduced_motion="reduce").done().until("document.body.dataset.ball > 0")
    one.page.wait_for_timeout(900)
    before = one.picture("#sphere canvas")
    box = one.page.locator("#sphere canvas").bounding_box()
    one.page.mouse.move(box["x"] + 80, box["y"] + 80)
    one.page.mouse.down()
    one.page.mouse.move(box["x"] + 160, box["y"] + 60, steps=4)
    one.page.mouse.up()
    one.page.wait_for_timeout(200)
    turned = one.picture("#sphere canvas")
    assert turned != before
    one.page.focus("#sphere canvas")
    one.page.keyboard.press("ArrowLeft")
    one.page.wait_for_timeout(200)
    assert one.picture("#sphere canvas") != turned
    ball = one.data()["ball"]
    one.page.focus("#flat")
    for _ in range(5):
        one.page.keyboard.press("ArrowLeft")  # towards the origin: the ball shrinks
    one.until(f"document.body.dataset.ball < {float(ball) - 0.02}")
    box = one.page.locator("#flat").bounding_box()
    one.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    one.page.mouse.down()
    one.page.mouse.move(box["x"] + 20, box["y"] + 20, steps=3)  # into the other class
    one.page.mouse.up()
    one.until("document.querySelector('#plane .note').textContent.includes('misclassified')")


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


def test_files_are_saved_and_play_alone(visit, tmp_path):
    one = visit(SMALL + "&p=3").done().until("document.body.dataset.ball > 0")
    with one.page.expect_download() as saved:
        one.page.click("#png")
    saved.value.save_as(tmp_path / "view.png")
    assert (tmp_path / "view.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with one.page.expect_download() as saved:
        one.page.click("#html")
    saved.value.save_as(tmp_path / "alone.html")
    text = (tmp_path / "alone.html").read_text()
    assert "http://" not in text
    assert "https://" not in text
    alone = visit(address=(tmp_path / "alone.html").as_uri()).done()
    alone.until("document.querySelector('#clock').textContent.includes('step')")
    for page in (one, alone):
        page.slide("#time", 1000)
        page.until("document.querySelector('#clock').textContent.match(/step (\\d+) of \\1$/)")
        page.page.wait_for_timeout(300)
    for name in ("verdict", "radius", "ball"):
        assert alone.data()[name] == one.data()[name]
    alone.slide("#time", 0)
    alone.until("document.querySelector('#clock').textContent.includes('step 0 of')")
    assert {url for url in alone.asked if not url.startswith(("data:", "blob:"))} == {
        (tmp_path / "alone.html").as_uri()
    }


def test_reloading_shows_the_same_again(visit):
    one = visit(SMALL).done()
    one.slide("#p", 3)
    one.until("document.body.dataset.verdict === 'single centres'").done()
    radius = one.data()["radius"]
    one.page.reload()
    one.done()
    assert one.page.inner_text("#power output") == "3.00"
    assert one.data()["radius"] == radius


def test_two_tabs_do_not_disturb_each_other(visit):
    one, two = visit(SMALL + "&p=1"), visit(SMALL + "&p=3")
    one.done()
    two.done()
    assert [tab.data()["verdict"] for tab in (one, two)] == ["class averages", "single centres"]
    two.slide("#p", 1)
    two.until("document.body.dataset.verdict === 'class averages'").done()
    assert one.data()["state"] == "done"


def test_many_rapid_moves_end_at_the_last(visit):
    one = visit(SMALL).done()
    for k in range(60):
        one.slide("#p", 1 + 0.05 * (k % 40))
    one.slide("#p", 3)
    one.until("document.body.dataset.verdict === 'single centres'").done()
    assert one.page.inner_text("#power output") == "3.00"


def test_a_server_that_stops_in_mid_stream_is_said_and_when_it_is_back_the_page_goes_on(browser, start):
    running = start()
    context = browser.new_context()
    one = Visit(context, running.address + "#log10_scale=-300")
    one.until("document.body.dataset.frames > 3")
    running.stop()
    one.until("!document.querySelector('#trouble').hidden", 30)
    assert "The server has stopped" in one.page.inner_text("#trouble")
    assert one.page.inner_text("#clock")  # what was received is still there
    one.slide("#p", 3)
    again = start(port=running.port)
    one.until("document.querySelector('#trouble').hidden && document.body.dataset.state === 'running'", 30)
    one.slide("#p", 3)
    one.until("document.body.dataset.verdict === 'single centres'", 90)
    assert all("ERR_" in text for text in one.trouble)  # only the browser's own notes on a server that was not there
    context.close()
    again.stop()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_all_can_be_read(visit, contrasts, size, scheme):
    one = visit(SMALL + "&positive=6&negative=4", size=size, color_scheme=scheme).done()
    assert one.page.evaluate("document.documentElement.scrollWidth") <= size[0]
    out = "[...document.querySelectorAll('button, select, figure, canvas, p, output')].filter((e) => !e.hidden && "
    out += "e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))"
    assert one.page.evaluate(out) == []
    assert {name for name, ratio in one.page.evaluate(contrasts, TEXT) if ratio < 4.5} == set()
    ground = one.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 23, 26)")
    one.page.click("#theme")
    assert one.page.evaluate("getComputedStyle(document.body).backgroundColor") != ground


def test_everything_is_reached_by_keyboard(visit):
    one = visit(SMALL).done()
    seen = set()
    for _ in range(40):
        one.page.keyboard.press("Tab")
        seen.add(one.page.evaluate("document.activeElement.id || document.activeElement.dataset.preset || ''"))
    assert {"p", "play", "time", "png", "html", "theme", "averages", "digits", "flat"} <= seen
    one.page.focus("#p")
    one.page.keyboard.press("End")
    one.until("document.querySelector('#power output').textContent === '5.00'").done()
