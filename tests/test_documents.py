"""The pages for people who carry on name files, tables and commands that exist."""

import re
from pathlib import Path

import pytest

from polyrelu.claims.catalogue import catalogue
from polyrelu.report.pages.claim_rows import CLAIM_GROUPS
from tools import call_paths, file_tables

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
PLACE = r"(?:polyrelu|tests|tools|benchmarks|docs)/[\w/.-]*"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_links_exist(page):
    text = page.read_text(encoding="utf-8")
    named = [place for place in re.findall(rf"`({PLACE})`", text) if not re.search(r"\b(NAME|PAPER|SUBJECT)\b", place)]
    linked = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("http")]
    missing = [one for one in named if not (ROOT / one).exists()]
    assert missing + [one for one in linked if one and not (page.parent / one).exists()] == []


def test_tables_of_contributing_stand_where_it_says():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tables = re.findall(rf"`([A-Z_]{{3,}})` (?:in|of) `({PLACE})`", text)
    assert {name for name, _ in tables} >= {"ATTACKS", "CERTIFICATES", "IMAGE_SETS", "RECIPES", "FOLDERS", "PAPERS"}
    for name, place in tables:
        assert re.search(rf"^{name}\b.*=", (ROOT / place).read_text(encoding="utf-8"), re.MULTILINE), (name, place)


def test_targets_of_make_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        blocks = re.findall(r"`make ([a-z]+)|^make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert {one or other for one, other in blocks} <= targets, page


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(file_tables.PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_tables_of_files_are_current(page):
    text = page.read_text(encoding="utf-8")
    assert file_tables.renewed(text, page.stem) == text, "make tables writes them again"


def test_every_subpackage_has_a_page():
    folders = {path.parent.name for path in (ROOT / "polyrelu").glob("*/__init__.py")}
    assert {page.stem for page in file_tables.PAGES.glob("*.md")} == (folders - {"checks"}) | {"shared"}


def test_the_table_of_call_paths_is_there():
    text = call_paths.DOCS.read_text(encoding="utf-8")
    table = text.partition(call_paths.BEGIN)[2].partition(call_paths.END)[0].split("\n")
    rows = [re.fullmatch(r"\| `(\w+)` \| (\d+) \| (\d+) \|", line) for line in table if line.startswith("| `")]
    assert [row and row[1] for row in rows] == list(call_paths.NAMES), "python -m tools.call_paths --docs writes it"
    assert all(row and 0 < int(row[2]) < int(row[3]) for row in rows)


def test_first_sentences_keep_their_brackets_whole(tmp_path):
    module = tmp_path / "one.py"
    module.write_text('"""What it is (A. B, App. C: Fig. 2), in words. More.\n"""\n')
    assert file_tables.first_sentence(module) == "What it is (A. B, App. C: Fig. 2), in words"


def test_every_group_of_claims_has_a_heading():
    assert {claim.group for claim in catalogue().values()} == set(CLAIM_GROUPS)
