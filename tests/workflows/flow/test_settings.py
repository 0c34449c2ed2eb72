"""What run.json keeps and the command line asks."""

import json
import shlex
from dataclasses import replace

import pytest

from polyrelu.errors import InputError
from polyrelu.nets import INITIALISATIONS
from polyrelu.train import LOSSES as TRAINED
from polyrelu.workflows.flow.settings import LOSSES, STARTS, FlowSettings


def test_the_names_are_those_of_the_package():
    assert LOSSES == TRAINED
    assert set(STARTS) == set(INITIALISATIONS) - {"zeros"}


def test_a_loss_of_one_percent_is_the_target_only_when_nothing_else_is():
    assert FlowSettings().targets == {"until_loss": 0.01}
    assert FlowSettings(until_time=3.0).targets == {"until_time": 3.0}
    assert FlowSettings(until_accurate=True, until_alignment=0.9).targets == {
        "until_accurate": True,
        "until_alignment": 0.9,
    }


def test_json_gives_the_settings_back():
    settings = FlowSettings(p=2.5, until_time=7.0, until_accurate=True)
    assert FlowSettings.from_json(json.loads(json.dumps(settings.as_json())), "run.json") == settings


@pytest.mark.parametrize(
    "change", [{"p": "3"}, {"dim": 10.5}, {"seed": True}, {"until_accurate": 1}, {"until_loss": "x"}, {"unheard": 1}]
)
def test_settings_of_the_wrong_type_are_refused(change):
    with pytest.raises(InputError, match=r"out=run\.json: expected settings"):
        FlowSettings.from_json({**FlowSettings().as_json(), **change}, "run.json")


@pytest.mark.parametrize("values", [None, [], {}, {"p": 3.0}])
def test_incomplete_settings_are_refused(values):
    with pytest.raises(InputError):
        FlowSettings.from_json(values, "run.json")


def test_the_command_spells_everything_out_and_quotes_the_folder():
    words = shlex.split(FlowSettings(init=1e-300, until_accurate=True).command("my runs"))
    assert words[:2] == ["polyrelu", "flow"]
    assert words[-2:] == ["--out", "my runs"]
    assert words[words.index("--init") + 1] == "1e-300"
    assert "--until-accurate" in words
    assert not {"--nudge", "--until-loss", "--until-time"} & set(words)
    assert "--nudge" in FlowSettings(start="nudged").command("out")


def test_going_on_takes_new_targets_and_limits_only():
    old = FlowSettings(until_loss=0.1, until_accurate=True)
    assert old.resumed({}) == old
    assert old.resumed({"until_loss": 1e-3}) == replace(old, until_loss=1e-3, until_accurate=False)
    assert old.resumed({"max_evaluations": 5.0}) == replace(old, max_evaluations=5.0)
    assert old.resumed({"p": 3.0}) == old  # typed again, the same
    with pytest.raises(InputError, match=r"p=2\.0: the run to resume has p=3\.0"):
        old.resumed({"p": 2.0})
