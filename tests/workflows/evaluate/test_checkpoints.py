"""Finished parts, run folders and identities: whatever is not exactly what was asked for does not count."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from polyrelu.data import Dataset
from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet, save
from polyrelu.robust import Bracket, BracketStatus
from polyrelu.train import Trajectory, flow
from polyrelu.workflows.evaluate.checkpoints import BracketedRows, join, read_part, write_part
from polyrelu.workflows.evaluate.inputs import identity_of
from polyrelu.workflows.evaluate.run import require_same
from polyrelu.workflows.evaluate.settings import EvaluationSettings
from polyrelu.workflows.flow.run import FORMAT, read_run_record, read_trajectory


def part(start: int = 200, count: int = 4) -> BracketedRows:
    draw = torch.Generator().manual_seed(start)
    lower = torch.rand(count, generator=draw, dtype=torch.float64)
    status = tuple(list(BracketStatus)[i % len(BracketStatus)] for i in range(count))
    steps = torch.randn(count, 3, generator=draw, dtype=torch.float64)
    return BracketedRows(start, Bracket(lower, lower + 1, steps, status, math.inf, torch.arange(count)), 1.25)


def same(one: BracketedRows | None, other: BracketedRows) -> bool:
    assert one is not None
    a, b = one.bracket, other.bracket
    pairs = ((a.lower, b.lower), (a.upper, b.upper), (a.perturbation, b.perturbation), (a.nodes, b.nodes))
    equal = all(torch.equal(x, y) for x, y in pairs)
    return equal and a.status == b.status and a.norm == b.norm and (one.start, one.seconds) == (other.start, 1.25)


def changed(folder: Path, **arrays: object) -> None:
    """The part in ``folder`` with other arrays; None leaves one out."""
    path = next(folder.glob("*.npz"))
    with np.load(path) as stored:
        found = {name: stored[name] for name in stored.files}
    found |= arrays
    np.savez(path, **{name: array for name, array in found.items() if array is not None})


def test_a_part_comes_back_whole_or_its_first_points(tmp_path):
    write_part(tmp_path, part(), "abc")
    assert [file.name for file in tmp_path.iterdir()] == ["00000200.npz"]
    assert same(read_part(tmp_path, 200, 4, "abc"), part())
    few = read_part(tmp_path, 200, 2, "abc")
    assert few is not None and len(few.bracket) == 2 and torch.equal(few.bracket.lower, part().bracket.lower[:2])
    assert read_part(tmp_path, 200, 5, "abc") is None  # a shorter one
    assert read_part(tmp_path, 200, 4, "abd") is None  # of other settings
    assert read_part(tmp_path, 100, 4, "abc") is None  # none


NAMES = ["lower", "upper", "perturbation", "status", "norm", "nodes", "seconds", "fingerprint"]


@pytest.mark.parametrize("name", NAMES)
def test_a_part_without_one_of_its_arrays_does_not_count(tmp_path, name):
    write_part(tmp_path, part(), "abc")
    changed(tmp_path, **{name: None})
    assert read_part(tmp_path, 200, 4, "abc") is None


@pytest.mark.parametrize("name", ["lower", "upper", "perturbation", "status", "nodes"])
def test_a_part_with_a_shorter_array_does_not_count(tmp_path, name):
    write_part(tmp_path, part(), "abc")
    with np.load(next(tmp_path.glob("*.npz"))) as stored:
        short = stored[name][:3]
    changed(tmp_path, **{name: short})
    assert read_part(tmp_path, 200, 4, "abc") is None
    assert read_part(tmp_path, 200, 3, "abc") is not None


class Bomb:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("name", NAMES)
def test_no_code_in_a_part_is_run(tmp_path, name):
    write_part(tmp_path, part(), "abc")
    changed(tmp_path, **{name: np.array([Bomb(tmp_path / "trace")] * 4, dtype=object)})
    assert read_part(tmp_path, 200, 4, "abc") is None
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_damaged_part_does_not_count(tmp_path, share):
    write_part(tmp_path, part(), "abc")
    path = tmp_path / "00000200.npz"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert read_part(tmp_path, 200, 4, "abc") is None
    path.write_bytes(b"PK\x03\x04" + os.urandom(200))
    assert read_part(tmp_path, 200, 4, "abc") is None


def test_parts_are_joined_in_the_order_of_their_rows():
    parts = [part(200), part(0), part(100)]
    whole = join(parts)
    ordered = [parts[1], parts[2], parts[0]]
    for name in ("lower", "upper", "perturbation", "nodes"):
        assert torch.equal(getattr(whole, name), torch.cat([getattr(one.bracket, name) for one in ordered]))
    assert whole.status == tuple(status for one in ordered for status in one.bracket.status) and whole.norm == math.inf


# ------------------------------------------------------------------------------------------------------ identity


def settled() -> tuple[PolyReLUNet, Dataset, EvaluationSettings]:
    net = PolyReLUNet(3, 4, 2.0, bias=True, seed=1, dtype=torch.float64)
    X = torch.arange(12, dtype=torch.float64).view(4, 3) / 7
    return net, Dataset(X, torch.tensor([1.0, -1.0, 1.0, -1.0]).double()), EvaluationSettings("net", "data")


def other_net(change) -> PolyReLUNet:
    net = settled()[0]
    with torch.no_grad():
        change(net)
    return net


def other_data(**change: object) -> Dataset:
    return dataclasses.replace(settled()[1], **change)


def bumped(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + torch.nn.functional.one_hot(torch.tensor(tensor.numel() - 1), tensor.numel()).view_as(tensor) * 1e-9


IDENTITIES = {
    "a weight": lambda net, data, s: (other_net(lambda n: n.weight[-1, -1].add_(1e-9)), data, s, 2.0),
    "an output": lambda net, data, s: (other_net(lambda n: n.output[0, 0].add_(1e-9)), data, s, 2.0),
    "a bias": lambda net, data, s: (other_net(lambda n: n.bias[0].add_(1e-9)), data, s, 2.0),
    "exchanged tensors": lambda net, data, s: (other_net(lambda n: n.weight.copy_(n.weight.flip(0))), data, s, 2.0),
    "the power": lambda net, data, s: (PolyReLUNet(3, 4, 2.5, bias=True, seed=1, dtype=torch.float64), data, s, 2.0),
    "an input": lambda net, data, s: (net, other_data(X=bumped(data.rows())), s, 2.0),
    "the first input": lambda net, data, s: (net, other_data(X=data.rows().flip(0)), s, 2.0),
    "a label": lambda net, data, s: (net, other_data(y=data.y.flip(0)), s, 2.0),
    "the type": lambda net, data, s: (net, data.to(torch.float32), s, 2.0),
    "fewer rows": lambda net, data, s: (net, data.subset(slice(3)), s, 2.0),
    "the norm": lambda net, data, s: (net, data, s, math.inf),
    "tol": lambda net, data, s: (net, data, dataclasses.replace(s, tol=2e-3), 2.0),
    "nodes": lambda net, data, s: (net, data, dataclasses.replace(s, nodes=301), 2.0),
    "seconds": lambda net, data, s: (net, data, dataclasses.replace(s, seconds=9.0), 2.0),
    "seed": lambda net, data, s: (net, data, dataclasses.replace(s, seed=1), 2.0),
}


@pytest.mark.parametrize("change", IDENTITIES)
def test_whatever_the_numbers_depend_on_makes_another_identity(change):
    plain = identity_of(*settled(), 2.0)
    assert identity_of(*settled(), 2.0) == plain
    assert identity_of(*IDENTITIES[change](*settled())) != plain


def test_the_shape_of_the_data_is_part_of_the_identity():
    # The same sixteen numbers in a row: four labels and 4 x 3 inputs, or eight labels and 8 x 1 inputs.
    net, _, settings = settled()
    numbers = torch.tensor([1, -1, 1, -1, 1, 1, -1, -1, 2, 3, 4, 5, 6, 7, 8, 9], dtype=torch.float64)
    one, other = Dataset(numbers[4:].view(4, 3), numbers[:4]), Dataset(numbers[8:].view(8, 1), numbers[:8])
    assert identity_of(net, one, settings, 2.0)["data"] != identity_of(net, other, settings, 2.0)["data"]


def test_the_version_is_part_of_the_identity_and_what_is_shown_is_not(monkeypatch):
    net, data, settings = settled()
    plain = identity_of(net, data, settings, 2.0)
    shown = dataclasses.replace(settings, limit=3, radii=(0.1,), net="elsewhere", data="too")
    assert identity_of(net, data, shown, 2.0) == plain
    monkeypatch.setattr("polyrelu.workflows.evaluate.inputs.__version__", "9.9")
    assert identity_of(net, data, settings, 2.0) != plain


def test_only_the_same_evaluation_goes_on_in_a_folder(tmp_path):
    identity = identity_of(*settled(), 2.0)
    assert require_same(tmp_path, identity) == 0  # an empty folder
    good = {"format": "polyrelu-evaluation-1", "identity": identity, "points": 7}
    path = tmp_path / "evaluation.json"

    def refused(record: object) -> bool:
        path.write_text(record if isinstance(record, str) else json.dumps(record), encoding="utf-8")
        try:
            return require_same(tmp_path, identity) < 0
        except InputError:
            return True

    found = [refused({**good, "format": name}) for name in _formats()]
    assert found.count(False) == 1  # the one format that is ours
    mine = {**good, "format": _formats()[found.index(False)]}
    assert not refused(mine) and require_same(tmp_path, identity) == 7
    for wrong in ("", "{", "[]", "null", "1", {**mine, "identity": None}, {**mine, "identity": []}, {"points": 7}):
        assert refused(wrong), wrong
    for key in identity:
        assert refused({**mine, "identity": {**identity, key: "another"}}), key
        less = {name: value for name, value in identity.items() if name != key}
        assert refused({**mine, "identity": less}) == (identity[key] is not None), key


def _formats() -> list[str]:
    from polyrelu.workflows.evaluate.run import FORMAT as OURS

    return ["polyrelu-other-1", "", OURS]


# ------------------------------------------------------------------------------------------------------ run folders


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", '"text"', "{}"])
def test_a_record_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json"):
        read_run_record(tmp_path)


@pytest.mark.parametrize("change", [{"format": "other"}, {"format": None}, {"summary": None}, {"summary": []}], ids=str)
def test_a_record_of_something_else_is_refused(tmp_path, change):
    good = {"format": FORMAT, "summary": {}, "settings": {}}
    (tmp_path / "run.json").write_text(json.dumps(good), encoding="utf-8")
    assert read_run_record(tmp_path) == good
    (tmp_path / "run.json").write_text(json.dumps({**good, **change}), encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json"):
        read_run_record(tmp_path)
    with pytest.raises(InputError, match=r"it has no run\.json"):
        read_run_record(tmp_path / "nothing")


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    net, data, _ = settled()
    return flow(net, data, until=0.6, max_evaluations=30)


def stored(folder: Path, trajectory: Trajectory) -> Path:
    save(trajectory.net, folder / "net.safetensors")
    return trajectory.save(folder / "trajectory.npz")


def test_net_and_history_must_be_of_one_moment(tmp_path, trajectory):
    stored(tmp_path, trajectory)
    assert read_trajectory(tmp_path).history.log_loss.tolist() == trajectory.history.log_loss.tolist()
    for net in (PolyReLUNet(3, 4, 2.0, bias=True, seed=2, dtype=torch.float64), PolyReLUNet(3, 5, 2.0)):
        save(net, tmp_path / "net.safetensors")
        with pytest.raises(InputError, match="not of the same moment"):
            read_trajectory(tmp_path)


def test_a_trajectory_of_another_format_or_with_code_in_it_is_refused(tmp_path, trajectory):
    path = stored(tmp_path, trajectory)
    with np.load(path) as kept:
        arrays = {name: kept[name] for name in kept.files}
    about = json.loads(str(arrays["about"]))
    np.savez(path, **{**arrays, "about": json.dumps({**about, "format": "other"})})
    with pytest.raises(InputError, match="written as other"):
        Trajectory.load(path, trajectory.net)
    trace = tmp_path / "trace"
    for name in arrays:
        bomb = np.array([Bomb(trace)], dtype=object)
        np.savez(path, **{**arrays, name: bomb})
        with pytest.raises(InputError, match="damaged or foreign"):
            Trajectory.load(path, trajectory.net)
    assert not trace.exists()
    for name in ("about", "clock", "log_loss"):
        np.savez(path, **{key: array for key, array in arrays.items() if key != name})
        with pytest.raises(InputError, match="damaged or foreign"):
            Trajectory.load(path, trajectory.net)
