import sys

import pytest
import swept

from polyrelu.errors import InputError
from polyrelu.sweep import find_function, source_version, sweepable
from polyrelu.sweep.function import check_settings


@pytest.mark.parametrize(
    "name, words",
    [
        ("os:system", "system is not marked with @polyrelu.sweep.sweepable"),
        ("swept:unmarked", "unmarked is not marked"),
        ("swept:sqare", "sqare does not exist (did you mean square?)"),
        ("swept:zzz", "; it has square, slow"),
        ("no_such_module_x:f", "there is no module no_such_module_x"),
        ("swept.inner:f", "there is no module swept.inner"),
        ("swept.square", "expected a name such as package.module:function"),
        ("swept:square()", "expected a name such as"),
        ("__main__:f", "move it out of the script"),
    ],
)
def test_only_marked_functions_are_found(name, words):
    with pytest.raises(InputError) as caught:
        find_function(name)
    assert words in str(caught.value)


def test_a_module_that_cannot_be_imported_says_why(tmp_path, monkeypatch):
    (tmp_path / "broken_swept.py").write_text("import no_such_module_y\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"importing broken_swept failed \(ModuleNotFoundError: .*no_such_module_y"):
        find_function("broken_swept:f")


def test_settings_are_held_against_the_signature():
    check_settings("swept:slow", swept.slow, {"x": 1, "gate": "", "mark": ""})
    with pytest.raises(InputError, match=r"gaet=2: expected a setting of swept:slow, .*did you mean gate"):
        check_settings("swept:slow", swept.slow, {"x": 1, "gaet": 2, "mark": ""})
    with pytest.raises(InputError, match="expected gate and mark as well"):
        check_settings("swept:slow", swept.slow, {"x": 1})

    @sweepable()
    def anything(**settings: int) -> int:
        return len(settings)

    check_settings("m:anything", anything, {"whatever": 1})


def test_version_changes_with_every_source_and_with_nothing_else(tmp_path, monkeypatch):
    package = tmp_path / "versioned_room"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("A = 1\n")
    (package / "notes.txt").write_text("hello")
    (tmp_path / "versioned.py").write_text(
        "from polyrelu.sweep import sweepable\n@sweepable(sources=('versioned_room',))\ndef f(x):\n    return x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    function = find_function("versioned:f")
    first = source_version(function)
    release, _, digest = first.partition("+")
    assert release == "0" and len(digest) == 12
    (package / "notes.txt").write_text("other")
    assert source_version(function) == first
    (package / "inner" / "__init__.py").write_text("A = 2\n")
    second = source_version(function)
    assert second != first
    (package / "inner" / "new.py").write_text("")
    third = source_version(function)
    assert third not in (first, second)
    (package / "inner" / "new.py").unlink()
    (package / "inner" / "__init__.py").write_text("A = 1\n")
    assert source_version(function) == first
    (tmp_path / "versioned.py").write_text("# its own module counts too\n")
    assert source_version(function) not in (first, second, third)


def test_version_of_our_own_functions_begins_with_ours_and_sources_must_exist():
    import polyrelu
    from polyrelu.workflows.experiments import mixture

    assert source_version(mixture).startswith(f"{polyrelu.__version__}+")

    @sweepable(sources=("no_such_module_z",))
    def lost() -> None: ...

    with pytest.raises(InputError, match="sources=no_such_module_z"):
        source_version(lost)


def test_finding_a_function_loads_no_torch():
    code = f"import sys; sys.path.insert(0, {swept.HERE!r}); from polyrelu.sweep import find_function; "
    code += "find_function('swept:square'); "
    import subprocess

    subprocess.run([sys.executable, "-c", code + "assert 'torch' not in sys.modules"], check=True)
