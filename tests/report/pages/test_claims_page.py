"""The page of claims as a file: complete, escaped, self-contained."""

import base64
import hashlib
import math
import re
from html.parser import HTMLParser

import pytest

import polyrelu
from polyrelu.claims.claim import Check, at_least, at_most, within
from polyrelu.claims.judge import Number, judge
from polyrelu.claims.papers import PAPERS
from polyrelu.report.pages import About, DrawnFigure, write_claims_page
from polyrelu.report.pages.claim_rows import Row, duration_text, interval_text

VERDICTS = {
    "A1": "reproduced", "A2": "reproduced", "A3": "differs", "A4": "differs", "A5": "differs", "B1": "reproduced",
    "B7": "artefact", "E1": "measured", "E2": "not-run", "I5": "reproduced", "I6": "reproduced",
}  # fmt: skip


class Reader(HTMLParser):
    """Tags as (name, attributes), the text of each row; balanced tags."""

    VOID = frozenset({"meta", "img", "br", "input", "rect", "circle"})

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def path(tmp_path_factory, example):
    folder = tmp_path_factory.mktemp("page with spaces")
    written = write_claims_page(folder / "index.html", example.about, example.judgements, example.figures)
    assert [file.name for file in folder.iterdir()] == ["index.html"]
    return written


@pytest.fixture(scope="module")
def source(path):
    return path.read_text(encoding="utf-8")


def row_source(source, id):
    return source[source.index(f'id="{id}" data-verdict') :].split("</li>", 1)[0]


def test_every_claim_has_its_verdict_and_a_broken_measurement_is_red(source):
    shown = {tag[1]["id"]: tag[1]["data-verdict"] for tag in Reader(source).tags if "data-verdict" in tag[1]}
    assert shown == VERDICTS
    broken = row_source(source, "A3")
    assert "✗</span> differs" in broken
    assert "not as expected" in broken
    assert "✗ does not" in broken
    assert "ValueError: no luck" in row_source(source, "A4")
    assert "no number" in row_source(source, "A5")
    assert "not as expected" not in row_source(source, "B7")


def test_what_came_out_in_words(source, example):
    header = " ".join("".join(Reader(source.split("<header>")[1].split("</header>")[0]).text).split())
    assert "Of 11 claims, 5 came out as published. 3 differ from what is published: A3, A4, A5." in header
    assert "1 published value is an artefact of how it was made: B7. 1 was measured without" in header
    assert "1 was not run. 3 claims did not come out as we expect: A3, A4, A5." in header
    assert "quick size, not the paper’s" in header
    assert "0 to 2, 1 to 3 for each claim" in header
    assert "6 min 52 s" in header
    assert "torch 2.13.0" in header
    assert example.about.command in header


def test_every_number_links_to_its_result_file(source):
    for id, values in {"A1": ["0.5", "1", "1.2e-5"], "A3": ["0.7"], "A5": ["no number"], "B7": ["0", "0", "1"]}.items():
        found = re.findall(r'<a href="([^"]*)" title="seed 0">([^<]*)</a>', row_source(source, id))
        assert found == [(f"results/{id}-0.json", value) for value in values]
    several = re.findall(r'<a href="results/A2-(\d).json" title="seed (\d)">([^<]*)</a>', row_source(source, "A2"))
    assert several == [("0", "0", "0.52"), ("1", "1", "0.49"), ("2", "2", "0.51")]
    assert '<a href="results/A2-2.json" tabindex="-1">0.51</a>' in source  # the median's own file
    put_together = row_source(source, "B1")
    assert '<a href="#B1-files" title="seed 0">0.75</a>' in put_together
    assert 'id="B1-files"' in put_together
    assert '<a href="results/B1-low.json">alpha 0.25, seed 0</a>' in put_together
    assert 'href="results/I5%20%22odd%22-0.json"' in source
    ids = [attributes["id"] for _, attributes in Reader(source).tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {
        attributes["href"][1:] for tag, attributes in Reader(source).tags if attributes.get("href", "")[:1] == "#"
    }
    assert targets <= set(ids)


def test_the_time_of_what_was_kept_is_told_too(tmp_path, example):
    pair = [example.claim(id, "MV24", (within("half", 0.5, 0.1),)) for id in ("A1", "A2")]
    shared = [judge(one, "quick", example.runs("A1", {"half": 0.5}, {"half": 0.5})) for one in pair]
    page = write_claims_page(tmp_path / "index.html", example.about, shared).read_text()
    assert "6 min 52 s for this page; its measurements 1 min 0 s of one core" in page


def test_commands_make_each_part_again(source, example):
    text = "".join(Reader(source).text)
    assert "polyrelu claims run B7 --profile quick --out out/B7" in text
    assert "polyrelu reproduce --only fig2 --profile quick --out out/fig2" in text
    other = About("paper", "", "ray", None, example.about.started, 1.0, {}, seed=4, seeds=3)
    assert (
        other.command_for("claims", "run", "A1")
        == "polyrelu claims run A1 --profile paper --seeds 3 --seed 4 --out out/A1"
    )


def test_nothing_comes_from_outside_and_only_our_own_script_may_run(source):
    reader = Reader(source)
    addresses = {paper.address for paper in PAPERS.values()}
    for tag, attributes in reader.tags:
        assert tag not in ("link", "iframe", "object", "base")
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
        if "http" in attributes.get("href", ""):
            assert tag == "a" and attributes["href"] in addresses
    style, script = (re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL) for tag in ("style", "script"))
    assert len(style) == len(script) == 1
    assert not re.search(r"url\(|@import|fetch|XMLHttp", style[0] + script[0])
    policy = next(one["content"] for tag, one in reader.tags if one.get("http-equiv") == "Content-Security-Policy")
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (style[0], script[0])]
    assert policy.startswith("default-src 'none'; img-src data:; ")
    assert f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'" in policy
    assert "unsafe" not in policy


def test_texts_are_escaped(source, example):
    assert "<script>window" not in source
    assert "<img src=x" not in source
    assert "".join(Reader(source).text).count(example.hostile) >= 6  # published, reason, name, settings, note, caption


def test_figures_stand_under_their_paper_with_verdicts(source, example):
    section = source[source.index('id="paper-MV24"') : source.index('id="paper-MV25"')]
    kept = re.search(r'src="data:image/png;base64,([^"]*)" width="1100" height="1900"', section)
    assert base64.b64decode(kept[1]) == example.png(1100, 1900)
    assert re.search(r'<a href="#A3">A3</a> <span class="badge differs">', section)
    assert "C9 (not asked for)" in section
    assert "<b>Not drawn:</b> E2: Needs MNIST." in source
    assert "settings of A1" in section


def test_a_page_needs_a_claim_and_a_figure_its_picture_or_a_reason(tmp_path, example):
    with pytest.raises(polyrelu.InputError, match="at least one claim"):
        write_claims_page(tmp_path / "index.html", example.about, [])
    for picture in (b"GIF89a", b"", ""):
        with pytest.raises(polyrelu.InputError, match="PNG file or the reason why fig2 is not drawn"):
            DrawnFigure(example.figures[0].figure, picture)
    assert not list(tmp_path.iterdir())


def test_intervals_and_times_in_words():
    checks = [within("a", 0.5, 0.25), at_least("a", 0.9), at_most("a", 1e-6), Check("a", 10, 10)]
    assert [interval_text(one) for one in checks] == ["0.25 to 0.75", "at least 0.9", "at most 1e-6", "exactly 10"]
    times = [duration_text(one) for one in (0.04, 12.2, 59.7, 245, 7381)]
    assert times == ["0.0 s", "12 s", "1 min 0 s", "4 min 5 s", "2 h 3 min"]


def test_bands_and_values_that_rounding_would_hide():
    check = at_most("a", 0.33)
    assert Row.value(Number("a", (0.330001,), check, False)) == "0.330001"  # not 0.33, which would hold
    assert Row.value(Number("a", (0.329999,), check, True)) == "0.33"
    number = Number("a", (0.3, 0.1, 0.2), check, True)
    assert (Row.value(number), Row.band(number)) == ("0.2", "(0.1 to 0.3 over 3 seeds)")
    assert Row.band(Number("a", (2.0, 2.0), None, None)) == "for both seeds"
    gap = Number("a", (0.1, math.nan), check, False)
    assert (Row.value(gap), Row.band(gap)) == ("no number", "for 1 of 2 seeds")


def test_the_little_axis():
    # marks 0, 4 and 10 with 15 % of 10 on both sides: the axis goes from -1.5 to 11.5
    strip = Row.strip(Number("a", (4.0, 10.0), Check("a", 0, 4, published=2), False))
    place = [round(100 * (mark + 1.5) / 13, 2) for mark in (0, 2, 4, 10)]
    assert strip.allowed == pytest.approx((place[0], place[2] - place[0]))
    assert strip.spread == pytest.approx((place[2], place[3] - place[2]))
    assert (strip.middle, strip.published) == (place[3], place[1])
    open_end = Row.strip(Number("a", (1.0,), at_least("a", 1.0), True))
    assert open_end.allowed[0] + open_end.allowed[1] == 100
    assert Row.strip(Number("a", (math.nan,), at_least("a", 1.0), False)) is None
    assert Row.strip(Number("a", (1.0,), None, None)) is None
