"""The page: well-formed, complete, escaped, and nothing in it reaches out."""

import base64
import re
from html.parser import HTMLParser

import pytest

import polyrelu
from polyrelu.report import Section, save_figure, summarise, trajectory_figure, write_page
from polyrelu.runs.settings import FlowSettings, text

VOID = {"meta", "img"}
VERSIONS = {"python": "3.12.1", "torch": "2.13.0", "polyrelu": "0.1.0"}


class Reader(HTMLParser):
    """Balanced tags, the pictures and the text."""

    def __init__(self):
        super().__init__()
        self.open, self.pictures, self.text, self.attributes = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag == "img":
            self.pictures.append(dict(attrs)["src"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def sections(averages, centres, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    found = []
    for p, (trajectory, data) in {1: averages, 3: centres}.items():
        picture = save_figure(trajectory_figure(trajectory), folder / f"p{p}.png").read_bytes()
        settings = FlowSettings(p=float(p), dim=50)
        command, shown = settings.command(f"p{p}"), {name: text(value) for name, value in settings.in_force().items()}
        found.append(Section(f"p = {p}", f"p={p}", summarise(trajectory, data), picture, command, shown, VERSIONS))
    return found


def test_page_holds_both_runs_and_nothing_from_outside(sections, tmp_path):
    path = write_page(tmp_path / "index.html", "Two runs", sections, note="a note", badge="quick size")
    page = read(path)
    kept = [base64.b64decode(source.removeprefix("data:image/png;base64,")) for source in page.pictures]
    assert kept == [section.picture for section in sections]
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|url\(", source)
    assert all(not value.startswith("//") for name, value in page.attributes if name in ("src", "href"))
    text = "".join(page.text)
    for section in sections:
        assert section.summary.reading() in text
        assert section.command in text
        for label, value in [*section.summary.rows(), *section.settings.items(), *VERSIONS.items()]:
            assert label in text
            assert value in text
    assert "a note" in text
    assert "quick size" in text
    assert [file.name for file in tmp_path.iterdir()] == ["index.html"]


def test_two_runs_are_compared_and_one_is_not(sections, tmp_path):
    both = write_page(tmp_path / "both.html", "Two", sections).read_text(encoding="utf-8")
    one = write_page(tmp_path / "one.html", "One", sections[:1]).read_text(encoding="utf-8")
    assert 'aria-label="Comparison"' in both
    assert 'aria-label="Comparison"' not in one


def test_page_is_made_for_phones_and_for_the_dark(sections, tmp_path):
    source = write_page(tmp_path / "index.html", "One", sections[:1]).read_text(encoding="utf-8")
    assert 'name="viewport"' in source
    assert "prefers-color-scheme: dark" in source


def test_texts_are_escaped(sections, tmp_path):
    title = "<script>alert('x')</script> & more"
    path = write_page(tmp_path / "index.html", title, sections[:1], note=title)
    assert "<script" not in path.read_text(encoding="utf-8")
    assert title in "".join(read(path).text)


def test_a_page_needs_a_run_and_a_picture_that_is_one(sections, tmp_path):
    with pytest.raises(polyrelu.InputError, match="at least one run"):
        write_page(tmp_path / "index.html", "Empty", [])
    with pytest.raises(polyrelu.InputError, match="PNG"):
        Section("h", "c", sections[0].summary, b"GIF89a", "", {}, {})
    assert not list(tmp_path.iterdir())
