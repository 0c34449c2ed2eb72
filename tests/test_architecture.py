"""The order of the subpackages, read from the sources: imports for type checkers and in functions count too."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = (
    "errors", "_version", "lazy", "interrupt", "progress", "threads", "checks", "files", "arrays",
    "data", "nets", "train", "bias", "robust", "sweep", "claims", "report", "estimator", "workflows", "explorer", "cli",
)  # fmt: skip
TOP = ("polyrelu", "polyrelu.__main__")  # the public names of all and the entry point, above the others
VERSION = "polyrelu._version"  # the number of the release, for everybody


def name_of(path: Path, root: Path) -> str:
    """polyrelu.robust for polyrelu/robust/__init__.py."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(root: Path) -> dict[str, Path]:
    return {name_of(path, root): path for path in sorted((root / "polyrelu").rglob("*.py"))}


@cache
def trees(root: Path) -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in sources(root).items()}


def offered(tree: ast.Module) -> list[str]:
    """What __all__ lists."""
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__all__" for one in node.targets)
    ]
    return ast.literal_eval(lists[0]) if lists and isinstance(lists[0], ast.List) else []


@cache
def imports(root: Path) -> list[tuple[str, str, str]]:
    """(module, module it imports from, name) of every import; the name is "" where the whole module is imported."""
    known, found = sources(root), []
    for module, tree in trees(root).items():
        package = module if known[module].name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found += [(module, one.name, "") for one in node.names if one.name in known]
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
                source = ".".join([*above, *([node.module] if node.module else [])])
                for one in node.names if source in known else ():
                    whole = f"{source}.{one.name}" in known and one.name not in offered(trees(root)[source])
                    found.append((module, f"{source}.{one.name}", "") if whole else (module, source, one.name))
    return found


def subpackage(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def upward(root: Path) -> list[str]:
    """Imports of what stands later in the order, or nowhere in it."""
    inside = [(one, source) for one, source, _ in imports(root) if one not in TOP]
    return [
        f"{one} imports {source}"
        for one, source in inside
        if source in TOP or ORDER.index(subpackage(source)) > ORDER.index(subpackage(one))
    ]


def cycles(root: Path) -> list[set[str]]:
    """Sets of modules that import one another, directly or not."""
    edges: dict[str, set[str]] = {name: set() for name in sources(root)}
    for one, source, _ in imports(root):
        edges[one] |= {source} - {one}
    reached = {name: closure(edges, name) for name in edges}
    together = {frozenset({name} | {other for other in reached[name] if name in reached[other]}) for name in edges}
    return [set(one) for one in together if len(one) > 1]


def closure(edges: dict[str, set[str]], start: str) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        for name in edges[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def private(root: Path) -> list[str]:
    """Names with an underscore in front that another subpackage imports or reads from a module."""
    found = []
    modules: dict[str, dict[str, str]] = {}  # what a module calls the modules that it imports
    for one, source, name in imports(root):
        if not name:
            modules.setdefault(one, {})[source.rpartition(".")[2]] = source
        taken = [part for part in (*source.split(".")[2:], name) if part.startswith("_")]
        if taken and source != VERSION and subpackage(one) != subpackage(source):
            found.append(f"{one} imports {source} {name}")
    for one, tree in trees(root).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr.startswith("_"):
                source = modules.get(one, {}).get(node.value.id, one)
                if subpackage(source) != subpackage(one) and not node.attr.startswith("__"):
                    found.append(f"{one} reads {source}.{node.attr}")
    return found


def deep(root: Path) -> list[str]:
    """Imports past the public interface of another subpackage: from a file where a folder speaks for it."""
    known = sources(root)
    return [
        f"{one} imports {source} {name}"
        for one, source, name in imports(root)
        if one not in TOP and subpackage(one) != subpackage(source)
        if source.count(".") > 1 and known[source].name != "__init__.py"
    ]


def test_every_module_stands_in_the_order():
    assert {subpackage(name) for name in sources(ROOT)} - {"polyrelu", "__main__"} == set(ORDER)


@pytest.mark.slow
def test_imports_go_one_way():
    assert upward(ROOT) == []


def test_no_modules_import_one_another():
    assert cycles(ROOT) == []


@pytest.mark.slow
def test_no_private_name_leaves_its_subpackage():
    assert private(ROOT) == []


def test_other_subpackages_are_imported_from_by_their_public_interface():
    assert deep(ROOT) == []


def test_public_interfaces_say_what_they_offer():
    silent = [
        name
        for name, path in sources(ROOT).items()
        if path.name == "__init__.py"
        and any(one == name and source.startswith(f"{name}.") for one, source, _ in imports(ROOT))
        and not offered(trees(ROOT)[name])
    ]
    assert silent == []


@pytest.fixture
def small(tmp_path):
    """A tree with the errors that the tests above look for."""
    for name, text in {
        "__init__": "",
        "errors": "",
        "data/__init__": "from polyrelu.data.rows import read\n",
        "data/rows": "def read(): ...\ndef _part(): ...\n",
        "nets/__init__": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from polyrelu.train import flow\n",
        "train/__init__": "from polyrelu.nets import base\nfrom polyrelu.data import rows\nrows._part()\n",
        "nets/base": "from ..data.rows import _part\n",
        "robust/__init__": "def f():\n    import polyrelu.sweep\n",
        "sweep": "",
    }.items():
        path = tmp_path / "polyrelu" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_an_upward_import_is_seen_in_functions_and_for_types(small):
    assert upward(small) == ["polyrelu.nets imports polyrelu.train", "polyrelu.robust imports polyrelu.sweep"]


def test_a_cycle_for_types_is_seen(small):
    (small / "polyrelu/train/__init__.py").write_text("from polyrelu.nets import flow\n")
    assert cycles(small) == [{"polyrelu.nets", "polyrelu.train"}]


def test_private_names_are_seen_in_imports_and_in_modules(small):
    assert private(small) == [
        "polyrelu.nets.base imports polyrelu.data.rows _part",
        "polyrelu.train reads polyrelu.data.rows._part",
    ]


def test_imports_past_an_interface_are_seen(small):
    assert deep(small) == [
        "polyrelu.nets.base imports polyrelu.data.rows _part",
        "polyrelu.train imports polyrelu.nets.base ",
        "polyrelu.train imports polyrelu.data.rows ",
    ]
