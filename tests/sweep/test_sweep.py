import json
import math

import pytest

from polyrelu.errors import InputError
from polyrelu.sweep import Sweep

GOOD = """
function = "swept:square"
[grid]
x = [1, 2.5]
noise = ["", "hm"]
"""


def written(tmp_path, text, name="sweep.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_grid_is_the_product_in_order_with_what_is_fixed():
    sweep = Sweep.grid("m:f", {"p": [1, 3], "alpha": (0.1, 0.2)}, {"dim": 5})
    assert list(sweep.settings) == [
        {"dim": 5, "p": 1, "alpha": 0.1},
        {"dim": 5, "p": 1, "alpha": 0.2},
        {"dim": 5, "p": 3, "alpha": 0.1},
        {"dim": 5, "p": 3, "alpha": 0.2},
    ]


def test_toml_and_json_say_the_same(tmp_path):
    toml = Sweep.read(written(tmp_path, GOOD))
    text = json.dumps({"function": "swept:square", "grid": {"x": [1, 2.5], "noise": ["", "hm"]}})
    assert toml == Sweep.read(written(tmp_path, text, "sweep.json"))
    assert toml.settings[2] == {"x": 2.5, "noise": ""}


def test_settings_instead_of_a_grid(tmp_path):
    text = 'function = "m:f"\nfixed.p = 3\n[[settings]]\nx = 1\n[[settings]]\nx = inf\n'
    assert list(Sweep.read(written(tmp_path, text)).settings) == [{"p": 3, "x": 1}, {"p": 3, "x": math.inf}]


def test_settings_are_plain_and_their_own():
    import numpy as np

    mine = [{"x": np.float64(2), "part": {"alpha": (1, 2)}}]
    sweep = Sweep("m:f", mine)
    mine[0]["part"]["alpha"] = 7
    assert sweep.settings == ({"x": 2.0, "part": {"alpha": [1, 2]}},) and type(sweep.settings[0]["x"]) is float


@pytest.mark.parametrize(
    "text, line, words",
    [
        ('function = "m:f"\ngrid.x = [1, 2\n', None, "line"),
        ('function = "m:f"\n\n[gird]\nx = [1]\n', 3, "one of function, grid, fixed, settings, time_limit (did you"),
        ('function = "m:f"\n[grid]\nx = 3\n', 3, "grid.x=3: expected a list of values"),
        ('function = "m:f"\n[grid]\nx = "12"\n', 3, "grid.x=12: expected a list of values"),
        ('function = "m:f"\n[grid]\nx = []\n', 3, "grid.x=[]: expected at least one value"),
        ('function = "m:f"\n[grid]\n', 2, "grid={}: expected at least one list"),
        ('function = "m:f"\n[grid]\nx = [1]\n[fixed]\nx = 1\n', 3, "grid.x=[1]: expected a setting not also in"),
        ('function = "m:f"\nfixed = 3\ngrid.x = [1]\n', 2, "fixed=3: expected a table"),
        ('function = "m:f"\nsettings = []\n', 2, "settings=[]: expected a list of at least one table"),
        ('function = "m:f"\nsettings = [1]\n', None, "settings[0]=1: expected a table"),
        ('function = "m:f"\nsettings = [{a = 1}]\ngrid.x = [1]\n', 3, "either a grid or settings"),
        ('function = "m:f"\n', None, "either a grid or settings"),
        ("function = 3\ngrid.x = [1]\n", 1, "function=3: expected text"),
        ("grid.x = [1]\n", None, "function=nothing: expected text"),
        ('function = "m:f"\ngrid.x = [2024-01-01]\n', None, "expected numbers, text, lists or dictionaries, not date"),
    ],
)  # fmt: skip
def test_malformed_toml_names_line_and_key(tmp_path, text, line, words):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        Sweep.read(path)
    message = str(caught.value)
    assert message.startswith(str(path)) and words in message
    if line:
        assert f"(line {line})" in message


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"function": "m:f",\n "grid": {"x": [1,]}}', "line 2"),
        ('{"function": "m:f"', "line 1"),
        ('{"grid": {"x": [1], "x": [2]}}', "'x' is there twice"),
        ("[1]", "content=list: expected a table"),
        ("[" * 100_000, "expected JSON"),
    ],
)
def test_malformed_json_names_the_place(tmp_path, text, words):
    with pytest.raises(InputError, match=r"sweep\.json") as caught:
        Sweep.read(written(tmp_path, text, "sweep.json"))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text, line, words",
    [
        ('function = "polyrelu.workflows.experiments:mixtur"\ngrid.p = [1]\n', 1, "(did you mean mixture?)"),
        ('function = "polyrelu.workflows.experiments:mixture"\nfixed.alphaa = 1\ngrid.p = [1]\n', 2, "did you mean alpha?"),  # noqa: E501
        ('function = "polyrelu.sweep.engines.worker:no"\n[[settings]]\np = 1\n', 1, "no does not exist"),
        ('function = "polyrelu.claims.measure:measure"\n[[settings]]\nexperiment = "x"\n', 2, "(setting number 1)."),
    ],
)  # fmt: skip
def test_what_the_function_does_not_take_is_named_with_its_line(tmp_path, text, line, words):
    path = written(tmp_path, text)
    Sweep.read(path)
    with pytest.raises(InputError) as caught:
        Sweep.read(path, call=True)
    assert str(caught.value).startswith(f"{path} (line {line}): ")
    assert words in str(caught.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(InputError, match=r"expected a sweep file that ends in \.toml or \.json"):
        Sweep.read(tmp_path / "sweep.yaml")
    with pytest.raises(InputError, match=r"can be read \(No such file"):
        Sweep.read(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'function = "\xff"')
    with pytest.raises(InputError, match="UTF-8"):
        Sweep.read(tmp_path / "latin.toml")


def test_a_grid_larger_than_any_machine_is_refused_before_it_is_made():
    with pytest.raises(InputError, match="1,000,000,000,000 settings: expected at most 1,000,000"):
        Sweep.grid("m:f", {name: range(1000) for name in "abcd"})
