"""The identity of a result changes with all code that measures it, and with nothing that only words or judges."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

from polyrelu.claims import catalogue, load_experiment
from polyrelu.claims import code_identity as identity_module
from polyrelu.claims.code_identity import ROOT, _read, code_identity, modules_of
from polyrelu.train import flow

FILES = {
    "polyrelu/__init__.py": '"""Lazy."""\nfrom polyrelu.claims.aside import W\n',
    "polyrelu/_version.py": "RELEASE = 1\n",
    "polyrelu/claims/__init__.py": "",
    "polyrelu/claims/paper/__init__.py": "from polyrelu.claims.paper.claims import CLAIMS\n",
    "polyrelu/claims/paper/claims.py": 'from polyrelu.claims.paper import sizes\nCLAIMS = ("It holds.", 0.5)\n',
    "polyrelu/claims/paper/sizes.py": "N = 10\n",
    "polyrelu/claims/paper/one.py": '''"""What it is."""
import polyrelu._version
from polyrelu.claims.paper import sizes
from polyrelu.claims.three import y
from polyrelu.claims.two import x
from polyrelu.nets import Net

def run():
    """Measure."""
    return sizes.N + x + y  # a sum
''',
    "polyrelu/claims/two.py": "from polyrelu.claims.four import z\nx = 1\n",
    "polyrelu/claims/three.py": "from polyrelu.claims.paper.one import run\ny = 1\n",  # a circle does no harm
    "polyrelu/claims/four.py": "z = 1\n",
    "polyrelu/claims/aside.py": "W = 1\n",
    "polyrelu/nets/__init__.py": "from polyrelu.nets.deep import Net\nfrom polyrelu.nets import other, late\n",
    "polyrelu/nets/deep/__init__.py": "from polyrelu.nets.deep.net import Net\nfrom .unused import U\n",
    "polyrelu/nets/deep/net.py": "RATE = 1\nclass Net:\n    def f(self):\n        from polyrelu.nets.late import L\n",
    "polyrelu/nets/deep/unused.py": "U = 1\n",
    "polyrelu/nets/late.py": "L = 1\n",
    "polyrelu/nets/other.py": "Other = 1\n",
}
ONE = FILES["polyrelu/claims/paper/one.py"]


@pytest.fixture
def identity(tmp_path):
    """identity(**{file: text}): that of the experiment where these files have other text."""
    count = itertools.count()

    def of(changes=None):
        root = tmp_path / str(next(count))
        for name, text in {**FILES, **(changes or {})}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return code_identity("polyrelu.claims.paper.one", root)

    return of


@pytest.mark.parametrize(
    "name",
    [
        "claims/paper/one",
        "claims/paper/sizes",
        "claims/two",
        "claims/three",
        "claims/four",
        "nets/deep/net",
        "nets/late",
    ],
)
def test_it_changes_with_every_module_that_is_imported(identity, name):
    path = f"polyrelu/{name}.py"
    plain, text = identity(), FILES[path]
    assert identity() == plain and len(plain) == 12
    number = "10" if "10" in text else "1" if "= 1" in text else ""
    changed = text.replace(f"= {number}", f"= {number}1", 1) if number else text.replace("sizes.N + x", "sizes.N - x")
    assert changed != text and identity({path: changed}) != plain
    assert identity({path: f"Z = 3\n{text}"}) != plain


def test_it_does_not_change_with_what_measures_nothing(identity):
    plain = identity()
    for name in ("claims/aside", "nets/other", "nets/deep/unused", "_version", "__init__"):  # not imported, or a name
        path = f"polyrelu/{name}.py"
        assert identity({path: FILES[path] + "Z = 3\n"}) == plain, name
    words = (
        ONE.replace("What it is.", "What it was.").replace("Measure.", "Measure it\n    once.").replace("a sum", "s")
    )
    assert words != ONE and identity({"polyrelu/claims/paper/one.py": words}) == plain
    typed = FILES["polyrelu/nets/__init__.py"] + "\nif TYPE_CHECKING:\n    from polyrelu.nets.deep.unused import U\n"
    assert identity({"polyrelu/nets/__init__.py": typed}) == plain
    types = ONE + "\nif TYPE_CHECKING:\n    from polyrelu.claims.aside import W\n"
    assert identity({"polyrelu/claims/paper/one.py": types}) == plain
    spaced = ONE.replace("import Net\n", "import (\n    Net,\n)\n\n").replace("sizes.N + x + y", "(sizes.N + x) + y")
    assert identity({"polyrelu/claims/paper/one.py": spaced}) == plain


def test_a_reworded_sentence_and_a_moved_bound_measure_nothing_again(identity):
    path = "polyrelu/claims/paper/claims.py"
    for old, new in (("It holds.", "It does hold."), ("0.5", "0.6"), ("CLAIMS", '"""Words."""\nCLAIMS')):
        assert identity({path: FILES[path].replace(old, new)}) == identity()


@pytest.mark.parametrize(
    "line",
    [
        "from polyrelu.claims import aside",
        "from polyrelu.claims import (\n    four,\n    aside as w,\n)",
        "from polyrelu.claims.aside import (\n    W,\n)",
        "from polyrelu.claims.aside import *",
        "import polyrelu.claims.aside",
        "import polyrelu.claims.aside as w",
        "from . import aside",
        "from .aside import W",
        "from ..claims import aside",
        "def late():\n    from polyrelu.claims import aside",
        "class Late:\n    def f(self):\n        if 1:\n            import polyrelu.claims.aside",
        "if not TYPE_CHECKING:\n    import polyrelu.claims.aside",
    ],
)
def test_every_form_of_import_is_followed(identity, line):
    two = {"polyrelu/claims/two.py": f"{FILES['polyrelu/claims/two.py']}{line}\n"}
    assert identity({**two, "polyrelu/claims/aside.py": "W = 2\n"}) != identity(two)


def test_a_name_that_an_interface_defines_itself_is_code_of_the_interface(identity):
    two = {"polyrelu/claims/two.py": FILES["polyrelu/claims/two.py"] + "from polyrelu.nets import made\n"}
    nets = {"polyrelu/nets/__init__.py": FILES["polyrelu/nets/__init__.py"] + "made = 1\n"}
    more = {"polyrelu/nets/__init__.py": FILES["polyrelu/nets/__init__.py"] + "made = 2\n"}
    assert identity({**two, **nets}) != identity({**two, **more})
    assert identity(nets) == identity(more)


def test_a_name_that_an_interface_loads_when_it_is_used_leads_to_its_module(identity):
    two = {"polyrelu/claims/two.py": FILES["polyrelu/claims/two.py"] + "from polyrelu.nets import U\n"}
    lazy = "if TYPE_CHECKING:\n    from polyrelu.nets.deep.unused import U\n\ndef __getattr__(name): ...\n"
    nets = {"polyrelu/nets/__init__.py": FILES["polyrelu/nets/__init__.py"] + lazy}
    assert identity({**two, **nets, "polyrelu/nets/deep/unused.py": "U = 2\n"}) != identity({**two, **nets})


def test_files_do_not_change_places(identity):
    two, three = (f"polyrelu/claims/{name}.py" for name in ("two", "three"))
    assert identity({two: FILES[three], three: FILES[two]}) != identity()


def test_types_of_numbers_count(identity):
    paths = "polyrelu/claims/paper/sizes.py"
    assert len({identity({paths: f"N = {text}\n"}) for text in ("10", "10.0", "'10'", "True", "None", "()")}) == 6


@pytest.mark.slow
def test_no_experiment_depends_on_claims_published_numbers_or_pages():
    for claim in catalogue().values():
        if claim.experiment:
            found = modules_of(load_experiment(claim.experiment).module)
            parts = {tuple(name.split(".")[1:]) for name in found}
            assert {part[0] for part in parts} <= {
                "arrays", "bias", "checks", "claims", "data", "errors", "files", "interrupt", "nets", "progress",
                "robust", "sweep", "threads", "train",
            }, claim.id  # fmt: skip
            assert not {word for part in parts if part[0] == "claims" for word in part[1:]} & {
                "claims", "published", "catalogue", "judge", "measure", "claim", "code_identity",
            }, claim.id  # fmt: skip
            assert not {part[1] for part in parts if part[0] == "claims" and len(part) == 2} & {
                "mmv24", "mv24", "mv25", "ll20", "lpll25", "errata",
            }, f"{claim.id}: what the source prints stands in the __init__"  # fmt: skip


@pytest.fixture
def before_and_after(tmp_path, monkeypatch):
    """before_and_after(experiment, file, old, new): its identity in this package, and where one file has other text."""

    def identities(experiment, file, old, new):
        module = f"polyrelu.claims.{experiment}"
        before, text = code_identity(module), (ROOT / "polyrelu" / file).read_text(encoding="utf-8")
        assert old in text
        path = tmp_path / "polyrelu" / file
        path.parent.mkdir(parents=True)
        path.write_text(text.replace(old, new), encoding="utf-8")
        changed = ".".join(path.relative_to(tmp_path).with_suffix("").parts)

        def read(root, name):
            return _read.__wrapped__(tmp_path, name) if name == changed else _read(root, name)

        monkeypatch.setattr(identity_module, "_read", read)
        return before, code_identity(module)

    return identities


FLOW = str(Path(sys.modules[flow.__module__].__file__).relative_to(ROOT / "polyrelu"))
FUTURE = "from __future__ import annotations\n"


@pytest.mark.parametrize(
    ("experiment", "file", "old", "new"),
    [
        # a sentence
        ("mv25.phases", "claims/mv25/claims.py", "directions come first and norms later", "norms come later"),
        ("mv24.robust_accuracy", "claims/mv24/claims/mixture.py", "keeps robust accuracy 1", "stays right"),
        # a bound
        ("mv25.phases", "claims/mv25/claims.py", '"distance at step 490", 0.04', '"distance at step 490", 0.05'),
        ("mv24.robust_accuracy", "claims/mv24/claims/mixture.py", "radius=0.75), 0.02)", "radius=0.75), 0.03)"),
        # a published number
        ("mv25.phases", "claims/mv25/__init__.py", "320: 1.0, 460: 0.0", "330: 1.0, 460: 0.0"),
        # a docstring: of the experiment, of what makes it one, of a claim, of a function that it calls
        ("mv25.phases", "claims/mv25/phases.py", '"""Fig. 5: alignment', '"""Figure 5: alignment'),
        ("mv25.phases", "claims/experiment.py", '"""Measure one part with one seed."""', '"""Measure a part."""'),
        ("mv24.robust_accuracy", "claims/claim.py", '"""One sentence of a paper', '"""A sentence of a paper'),
        ("mv25.phases", FLOW, FUTURE, f'"""Again."""\n{FUTURE}'),
    ],
)
def test_in_this_package_words_and_bounds_measure_nothing_again(before_and_after, experiment, file, old, new):
    before, after = before_and_after(experiment, file, old, new)
    assert after == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("claims/mv25/phases.py", "0.9)", "0.91)"),
        ("claims/mv25/sizes.py", "10_000)", "10_001)"),
        (FLOW, FUTURE, f"{FUTURE}ADDED = 1\n"),
    ],
)
def test_in_this_package_code_and_constants_measure_again(before_and_after, file, old, new):
    before, after = before_and_after("mv25.phases", file, old, new)
    assert after != before
