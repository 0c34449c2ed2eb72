import dataclasses

import pytest

from polyrelu.errors import InputError
from polyrelu.explorer.parameters import PARAMETERS, PRESETS, Setting


def test_the_table_and_the_setting_name_the_same_numbers_with_the_same_usual_values():
    usual = dataclasses.asdict(Setting())
    assert {limit.name: limit.usual for limit in PARAMETERS}.items() <= usual.items()
    assert all(limit.least <= limit.usual <= limit.most for limit in PARAMETERS)


@pytest.mark.parametrize("limit", PARAMETERS, ids=lambda limit: limit.name)
@pytest.mark.parametrize("value", ["least - 1", "most + 1", "nan", "inf", "text", "None", "True", "1e999", "[1]"])
def test_every_number_beyond_its_limit_is_refused_with_a_sentence_that_names_it(limit, value):
    given = {"least - 1": limit.least - 1, "most + 1": limit.most + 1, "nan": float("nan"), "inf": float("inf")}
    found = given.get(value, {"text": "3", "None": None, "True": True, "1e999": 10**999, "[1]": [1]}.get(value))
    with pytest.raises(InputError, match=f"^{limit.name}=.*expected") as caught:
        Setting.from_json({limit.name: found})
    assert len(str(caught.value)) < 250


def test_whole_numbers_are_whole():
    assert Setting.from_json({"dim": 60.0}).dim == 60
    with pytest.raises(InputError, match="whole number"):
        Setting.from_json({"dim": 60.5})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"dim": 5}, "one direction for each of 3\\+3"),
        ({"dim": 1000, "samples": 5000, "width": 1000}, "samples x dim x width"),
        ({"start": "zeros"}, "balanced, gaussian"),
        ({"labels": ["fine"]}, "coarse, fine"),
        ({"data": "/etc/passwd"}, "mixture, digits"),
        ({"color": 1}, "names among"),
        ([], "names and numbers"),
        (None, "names and numbers"),
    ],
)
def test_what_does_not_fit_together_is_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        Setting.from_json(given)


def test_the_six_presets_are_within_the_limits():
    assert [preset.id for preset in PRESETS] == ["averages", "decouples", "large", "fooled", "fine", "digits"]
    for preset in PRESETS:
        assert Setting.from_json(dataclasses.asdict(preset)["setting"]) == preset.setting


def test_the_smallest_start_is_a_number():
    assert Setting(log10_scale=-300).scale == pytest.approx(1e-300, rel=1e-9)
