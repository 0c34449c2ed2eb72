"""Quantities are equal where they mean the same, say so in words, and come back from a file as they were."""

import json

import pytest

from polyrelu.claims import Quantity, Values
from polyrelu.claims.quantity import located
from polyrelu.errors import InputError


def test_a_quantity_is_its_name_and_where_it_is_measured():
    one = Quantity("robust accuracy", p=3, radius=0.6)
    assert one == Quantity("robust accuracy", radius=0.6, p=3.0) and hash(one) == hash(
        Quantity(one.name, radius=0.6, p=3.0)
    )
    assert one != Quantity("robust accuracy", p=3) != "robust accuracy"
    assert str(one) == "robust accuracy, p = 3, radius = 0.6"
    assert str(Quantity("loss", net="pReLU, small", normalised=True)) == "loss, pReLU, small, normalised"
    assert str(Quantity("loss", normalised=False)) == "loss, not normalised"
    assert str(Quantity("distance", alpha=0.1, dim=1000)) == "distance, α = 0.1, D = 1000"
    with pytest.raises(InputError, match="the name alone"):
        Quantity("robust accuracy")


def test_values_of_a_part_are_located_in_it():
    assert located("loss", {}) == "loss"
    assert located("loss", {"p": 3}) == Quantity("loss", p=3)
    assert located(Quantity("accuracy", radius=1.0), {"p": 3}) == Quantity("accuracy", p=3, radius=1.0)
    with pytest.raises(TypeError):
        located(Quantity("accuracy", p=1), {"p": 3})


def test_what_was_not_measured_is_an_error_that_names_the_nearest():
    values = Values({"loss": 1.0, Quantity("accuracy", p=3): 0.5})
    assert values["loss"] == 1 and values[Quantity("accuracy", p=3)] == 0.5
    with pytest.raises(KeyError, match="nearest is 'accuracy, p = 3'"):
        values[Quantity("acuracy", p=3)]
    with pytest.raises(KeyError, match="was not measured"):
        Values()["loss"]


def test_values_along_an_axis():
    values = Values({Quantity("accuracy", p=p, radius=r): p + r for p in (1, 3) for r in (0.2, 0.1)})
    values["accuracy"] = 0.0
    values[Quantity("accuracy", radius=0.1)] = 0.0
    assert list(values.along("radius", "accuracy", p=3).items()) == [(0.2, 3.2), (0.1, 3.1)]
    assert values.along("p", "accuracy", radius=0.1) == {1: 1.1, 3: 3.1}
    assert values.along("radius", "accuracy") == {0.1: 0.0}
    with pytest.raises(KeyError, match="was not measured"):
        values.along("alpha", "accuracy")


def test_records_are_read_as_they_were_written():
    values = Values({"loss": 1.0, Quantity("accuracy", p=3, net="a", on=True): 2})
    assert Values.from_record(json.loads(json.dumps(values.record()))) == values
    for wrong in (
        None, {}, "x", [1], [{"quantity": "loss"}], [{"quantity": "loss", "value": "1"}], [{"quantity": 1, "value": 1}],
        [{"quantity": "loss", "value": 1, "more": 2}], [{"quantity": "loss", "where": {}, "value": 1}],
        [{"quantity": "loss", "where": {"p": [1]}, "value": 1}], [{"quantity": "loss", "where": 3, "value": 1}],
    ):  # fmt: skip
        with pytest.raises(ValueError, match="values"):
            Values.from_record(wrong)
