"""Training refuses what it cannot train, in words, whatever it is given."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from polyrelu import Dataset, InputError, PolyReLUClassifier, PolyReLUNet, Trajectory, Until, descend, flow

X = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
DATA = Dataset(X, torch.where(X[:, 0] > 0, 1.0, -1.0))


class Answers(nn.Module):
    def __init__(self, answer):
        super().__init__()
        self.weight, self.answer = nn.Parameter(torch.ones(1)), answer

    def forward(self, X):
        return self.answer(X * self.weight)


NETS = [
    None, "net", nn.Linear, nn.Sequential(), nn.Module(), nn.Linear(2, 1), nn.Linear(3, 2), nn.LazyLinear(1),
    nn.Linear(3, 1, device="meta"),
    PolyReLUNet(2, 3), PolyReLUNet(3, 3, outputs=2), Answers(lambda X: None), Answers(lambda X: X.sum()),
    Answers(lambda X: X[:, 0].detach()),
    Answers(lambda X: X[:, 0] * math.nan), Answers(lambda X: (X, X)), Answers(lambda X: X[:, 0].long()),
    Answers(lambda X: X[:0]),
]  # fmt: skip
WRONG = {
    "data": [None, X, (X, DATA.y), "mnist", Dataset, X.numpy()],
    "loss": ["hinge", None, 5, ["exp"]],
    "until": [None, "a", -1.0, math.nan, 1j, [0.1], object()],
    "checkpoints": [5, "ab", [math.nan], [None], [[1]], {"a": 1}],
    "after": [5, "run", PolyReLUNet(3, 3)],
    "progress": [5, {1}, "a", dict],
}
DESCEND = WRONG | {
    "method": ["newton", None, 5], "rate": [0, -1, math.nan, math.inf, "a", None, 1j],
    "steps": [0, 1.5, "a", None, True], "batch": [0, -1, 2.5, None],
    "every": [0, "a"], "seed": ["a", None, 1.5, 2**70], "unit": [0, -1, math.nan, math.inf, "a", None],
    "weights": [torch.ones(5), "a", -torch.ones(12)],
    "each_epoch": [5, "a"], "loss_based": [2, "yes", None],
}  # fmt: skip
FLOW = WRONG | {
    "rtol": [0, 1, math.nan, "a", None], "record": [5, [-1.0], [math.inf], "ab"], "surrogate": [-1, 1.5, "a", None],
    "max_evaluations": [0, -5, math.nan, "a"],
    "merge": [5, "a"], "drop": [None], "watch": [5],
}  # fmt: skip


@pytest.mark.parametrize("train", [descend, flow])
@pytest.mark.parametrize("net", NETS, ids=range(len(NETS)))
def test_nets_that_cannot_be_trained(train, net):
    with pytest.raises(InputError):
        train(net, DATA)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in DESCEND.items() for value in values])
def test_descend(name, value):
    given = {"net": PolyReLUNet(3, 3, 2.0), "data": DATA, "steps": 3, "method": "adam", name: value}
    with pytest.raises(InputError):
        descend(**given)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in FLOW.items() for value in values])
def test_flow(name, value):
    given = {"net": PolyReLUNet(3, 3, 2.0), "data": DATA, "max_evaluations": 5, name: value}
    with pytest.raises(InputError):
        flow(**given)


def test_numbers_of_other_libraries_are_numbers():
    net = PolyReLUNet(3, 3, 2.0)
    plain = descend(net, DATA, method="adam", rate=0.125, steps=3, unit=2.0, seed=1).history
    other = descend(
        net, DATA, method="adam", rate=Fraction(1, 8), steps=np.int8(3), unit=np.float32(2), seed=np.uint8(1)
    ).history
    np.testing.assert_array_equal(plain.log_loss, other.log_loss)


@pytest.mark.filterwarnings("ignore:Evaluation budget spent")
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("solver", ["adam", "flow"])
@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e120, 1e200, 1e300])
def test_rows_near_the_end_of_what_a_float_holds(normalise, solver, scale):
    """The unit of length to the power p under- or overflows: trained all the same, or refused in words."""
    rows, labels = X.double().numpy() * scale, (X[:, 0] > 0).numpy()
    head = PolyReLUClassifier(
        p=3, width=3, epochs=1, normalise_input=normalise, solver=solver, until=0.69, random_state=0
    )
    try:
        head.fit(rows, labels).predict(rows)
    except InputError as error:
        assert str(error)


@pytest.mark.parametrize(
    "fields",
    [{"loss": "a"}, {"loss": None}, {"time": math.nan}, {"alignment": [1]}, {"log10_loss": math.inf}, {"accurate": 5}],
)
def test_until(fields):
    with pytest.raises(InputError):
        Until(**fields)


def test_a_trajectory_is_saved_and_loaded_under_a_name(tmp_path):
    run = flow(PolyReLUNet(3, 3, 2.0), DATA, max_evaluations=3)
    for path in (5, None, "a\0b", "x" * 5000, tmp_path, tmp_path / "no" / "where.npz", b"a"):
        with pytest.raises(InputError, match=r"^path="):
            run.save(path)
        with pytest.raises(InputError):
            Trajectory.load(path, run.net)
    assert Trajectory.load(run.save(tmp_path / "a.npz"), run.net).log_loss == run.log_loss
