"""The hash that says whether a kept result is of this code: every file that measures counts, and nothing else."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

from polyrelu import claims
from polyrelu.claims import measure as module
from polyrelu.claims.measure import code_of

FILES = {
    "one": "from polyrelu.claims.two import helper\nfrom polyrelu.data import Dataset\n\nX = 1\n\nCLAIMS = ()\n",
    "two": "from polyrelu.claims.three import deeper\n",
    "three": "from polyrelu.claims.one import X\n",  # a circle ends
    "aside": "Y = 1\n",
}


@pytest.fixture
def code(tmp_path, monkeypatch):
    """The hash of an experiment in file ``one``, after the files given were written anew."""

    def found(name):
        return SimpleNamespace(origin=str(tmp_path / f"{name.rpartition('.')[2]}.py"))

    monkeypatch.setattr(importlib.util, "find_spec", found)

    def run():
        pass

    run.__module__ = "polyrelu.claims.one"

    def hashed(**changed):
        for name, text in (FILES | changed).items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        module._code.cache_clear()
        return code_of(SimpleNamespace(run=run))

    yield hashed
    module._code.cache_clear()


@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_a_change_in_the_file_or_in_one_it_imports_is_other_code(code, name):
    before = code()
    assert code() == before
    assert code(**{name: "Z = 3\n" + FILES[name]}) != before
    assert code(**{name: FILES[name].replace("import", "import  ", 1)}) != before


def test_claims_and_files_that_are_not_imported_do_not_measure(code):
    before = code()
    assert code(one=FILES["one"] + "CLAIMS += (1,)\n") == before == code(aside="Y = 2\n")
    assert code(two=FILES["two"] + "from polyrelu.claims.aside import Y\n") != before


def test_files_of_claims_import_each_other_as_the_hash_expects():
    # "from polyrelu.claims.x import y" and "from polyrelu.claims import x" are followed; the latter takes the claims
    # of x alone.
    for file in sorted(Path(claims.__file__).parent.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        top = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        for node in ast.walk(tree):
            names = [alias.name for alias in getattr(node, "names", []) if isinstance(node, ast.Import)]
            assert not any(name.startswith("polyrelu.claims") for name in names), (file.name, names)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polyrelu.claims"):
                assert node in top and node.level == 0, (file.name, node.lineno)
        whole = {alias.asname or alias.name for node in top if node.module == "polyrelu.claims" for alias in node.names}
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in whole and file.stem != "catalogue":
                use = parents[node]
                assert isinstance(use, ast.Attribute) and use.attr == "CLAIMS", (file.name, node.lineno)


def test_every_room_that_experiments_import_from_counts():
    rooms = {
        node.module.split(".")[1]
        for file in Path(claims.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polyrelu.")
    }
    assert set(module.ROOMS) == rooms - {"claims", "errors", "sweep"}
