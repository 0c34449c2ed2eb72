"""The page of claims in a real browser: quiet, self-contained, usable by keyboard, on any screen and on paper."""

import pytest

from polyrelu.report.pages import write_claims_page

pytestmark = pytest.mark.waits
CLAIMS = ["A1", "A2", "A3", "A4", "A5", "B1", "B7", "E1", "E2", "I5", "I6"]
PHONE, DESKTOP = (390, 844), (1280, 900)


@pytest.fixture(scope="module")
def path(tmp_path_factory, example):
    folder = tmp_path_factory.mktemp("page with spaces")
    return write_claims_page(folder / "index.html", example.about, example.judgements, example.figures)


@pytest.fixture
def visit(browser, path):
    """Open the page; at the end nothing was complained about, nothing fetched, no text ran as a script."""
    visits = []

    def go(fragment="", size=DESKTOP, **settings):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
        page, trouble, asked = context.new_page(), [], []
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri() + fragment)
        visits.append((context, page, trouble, asked))
        return page

    yield go
    for context, page, trouble, asked in visits:
        assert trouble == []
        assert {url.split("#")[0] for url in asked if not url.startswith("data:")} == {path.as_uri()}
        assert page.evaluate("window.broken === undefined")
        context.close()


def shown(page):
    return [row.get_attribute("id") for row in page.locator(".claim").all() if row.is_visible()]


def fragment(page):
    return page.evaluate("location.hash")


@pytest.mark.slow
def test_filters_and_search_narrow_the_rows_and_stand_in_the_address(visit):
    page = visit()
    assert shown(page) == CLAIMS
    page.select_option("[name=verdict]", "differs")
    assert shown(page) == ["A3", "A4", "A5"]
    assert page.inner_text("#shown") == "3 of 11 shown"
    page.select_option("[name=paper]", "LL20")
    assert shown(page) == ["A4", "A5"]
    assert fragment(page) == "#verdict=differs&paper=LL20"
    page.fill("[name=q]", "NO  luck")  # every word, in any case
    assert shown(page) == ["A4"]
    page.fill("[name=q]", "nowhere to be found")
    assert shown(page) == []
    assert page.is_visible("#nothing")
    page.click("#reset")
    assert shown(page) == CLAIMS
    assert not page.is_visible("#nothing")
    page.select_option("[name=group]", "E")
    assert shown(page) == ["E1", "E2"]
    page.click(".legend a[href='#verdict=artefact']")
    assert shown(page) == ["B7"]
    page.go_back()
    assert shown(page) == ["E1", "E2"]


@pytest.mark.slow
def test_the_address_brings_a_view_back(visit):
    page = visit("#verdict=differs&q=luck")
    assert shown(page) == ["A4"]
    assert page.input_value("[name=q]") == "luck"
    assert page.input_value("[name=verdict]") == "differs"
    page.reload()
    assert shown(page) == ["A4"]
    page.evaluate("location.hash = '#verdict=unheard-of'")
    page.wait_for_function("document.getElementById('shown').textContent === '11 of 11 shown'")
    assert page.evaluate("document.querySelector('[name=verdict]').selectedOptions[0].text") == "all"


@pytest.mark.slow
def test_an_anchor_opens_its_row_even_if_it_was_filtered_away(visit):
    page = visit("#verdict=differs")
    page.evaluate("location.hash = '#B7'")
    page.wait_for_selector("#B7 .more", state="visible")
    assert page.locator("#B7").is_visible()
    assert page.evaluate("document.getElementById('B7').getBoundingClientRect().top") < 200
    page = visit("#B1-files")
    assert page.locator("#B1-files").is_visible()


@pytest.mark.slow
def test_rows_open_with_the_keyboard(visit):
    page = visit("#claims")
    page.locator("#unfold").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.claim').id") == "A1"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator("#A1 .more").is_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "results/A1-0.json"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert not page.locator("#A1 .more").is_visible()
    page.click("#unfold")
    assert page.locator(".claim details[open]").count() == len(CLAIMS)
    page.click("#unfold")
    assert page.locator(".claim details[open]").count() == 0


@pytest.mark.slow
def test_without_a_script_every_row_shows_and_opens(visit):
    page = visit(java_script_enabled=False)
    assert shown(page) == CLAIMS
    assert not page.is_visible("#filters")
    page.click("#A3 .sentence")
    assert page.locator("#A3 .more").is_visible()


@pytest.mark.slow
def test_commands_can_be_copied(visit, example):
    page = visit()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("header .command button")
    page.wait_for_function("document.querySelector('header .command button').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == example.about.command


@pytest.mark.slow
@pytest.mark.parametrize("size", [(320, 700), PHONE, (700, 900), DESKTOP])
def test_nothing_sticks_out_even_with_every_row_open(visit, size):
    page = visit(size=size)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    out = "[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)"
    assert page.evaluate(f"{out}.map((one) => one.outerHTML.slice(0, 80))") == []


@pytest.mark.slow
def test_columns_on_a_desk_and_cards_on_a_phone(visit):
    places = "(where) => [...document.querySelectorAll(where + ' > span')].map((one) => one.getBoundingClientRect())"
    page = visit()
    head, row = page.evaluate(places, ".head"), page.evaluate(places, "#A1 summary")
    assert [one["x"] for one in head] == [one["x"] for one in row]
    assert len({one["y"] for one in row}) == 1
    for media, width in (("screen", 1280), ("screen", 700), ("print", 688)):
        page.emulate_media(media=media)
        page.set_viewport_size({"width": width, "height": 900})
        badge, cells = page.locator("#B7 .badge").bounding_box(), page.evaluate(places, "#B7 summary")
        assert badge["x"] + badge["width"] < cells[3]["x"], f"the badge covers what is published: {media}, {width}"
    page = visit(size=PHONE)
    identity, sentence, verdict, published, measured = page.evaluate(places, "#A1 summary")
    assert abs(identity["y"] - verdict["y"]) < 4
    assert (
        verdict["bottom"] <= sentence["y"] < sentence["bottom"] <= published["y"] < published["bottom"] <= measured["y"]
    )
    assert not page.is_visible(".head")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read_in_the_light_and_in_the_dark(visit, contrasts, scheme):
    page = visit(color_scheme=scheme)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    ratios = page.evaluate(contrasts, "body *:not(script, option, svg, svg *, img)")
    assert {name for name, ratio in ratios if ratio < 4.5} == set()
    badges = page.evaluate(contrasts, ".badge")
    assert len(badges) > len(CLAIMS)
    ground = page.evaluate(
        "[document.body, document.querySelector('figure')].map((e) => getComputedStyle(e).backgroundColor)"
    )
    assert ground == ["rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 23, 26)", "rgb(255, 255, 255)"]


@pytest.mark.slow
def test_on_paper_the_shown_rows_are_kept_and_figures_are_whole(visit):
    page = visit("#verdict=differs", color_scheme="dark")
    page.emulate_media(media="print")
    assert shown(page) == ["A3", "A4", "A5"]
    assert not page.is_visible("#filters")
    assert page.inner_text("#shown") == "3 of 11 shown"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == "avoid"
    page.set_viewport_size({"width": 688, "height": 1017})  # what 14 mm margins leave of A4, at 96 pixels an inch
    tall = page.evaluate("document.querySelector('figure').getBoundingClientRect().height")
    assert 0 < tall < 1017
