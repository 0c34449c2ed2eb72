"""Values that a fuzzer found to end in another library's error: each is now refused, or taken, in words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from polyrelu import (
    InputError,
    OrthonormalMixture,
    PolyReLUClassifier,
    PolyReLUNet,
    RobustnessReport,
    SymmetricSeparable,
    descend,
)
from polyrelu.nets import FixedOutputNet, relu_power

X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]] * 6)
Y = np.array([0, 0, 1, 1] * 6)
MIX = OrthonormalMixture(dim=4, positive=1, negative=1, alpha=0.1)


def test_text_labels_are_not_compared_with_numbers():
    head = PolyReLUClassifier(epochs=1, random_state=0).fit(X, Y)
    with pytest.raises(InputError, match="Mix of label input types"):
        head.score(X, Y.astype(str))


def test_labels_in_bfloat16_are_the_numbers_they_are():
    one = PolyReLUClassifier(epochs=2, random_state=0).fit(X, Y)
    other = PolyReLUClassifier(epochs=2, random_state=0).fit(X, torch.from_numpy(Y).to(torch.bfloat16))
    assert (one.decision_function(X) == other.decision_function(X)).all()


def test_labels_that_cannot_be_sorted_are_refused():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(InputError, match="expected labels of one kind"):
        RobustnessReport.measure(model, X, np.array([None, "a"] * 12, dtype=object))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_have_no_powers():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    strided = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for z in (nested, strided):
        with pytest.raises(InputError, match="expected a dense tensor in float32 or float64"):
            relu_power(z, 2.5)


@pytest.mark.parametrize("balanced", [True, False])
def test_more_rows_than_any_number_counts(balanced):
    with pytest.raises(InputError, match=r"fits in 63 bits|not enough memory"):
        MIX.sample(2**63, seed=0, balanced=balanced)


def test_extra_rows_that_no_memory_holds():
    with pytest.raises(InputError, match="not enough memory for extra=1000000000000000 rows"):
        SymmetricSeparable(3, extra=10**15).sample(4, seed=0)
    extra = SymmetricSeparable(3, extra=5, dtype=torch.float64).sample(4, seed=0).rows(4)
    hints = SymmetricSeparable(3, extra=3, dtype=torch.float64).sample(4, seed=0).rows(4)
    assert torch.equal(extra[:3], hints)
    torch.testing.assert_close(extra[2:, 0] / extra[2, 0], torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))


def test_a_function_that_does_not_take_epoch_and_net_is_named():
    data, net = MIX.sample(8, seed=0), PolyReLUNet(4, 4, p=3)
    with pytest.raises(InputError, match=r"each_epoch=.*expected a function of epoch and net"):
        descend(net, data, steps=2, each_epoch=np.float32)

    def wrong(epoch, net):
        raise TypeError("of the caller's own")

    with pytest.raises(TypeError, match="of the caller's own"):
        descend(net, data, steps=2, each_epoch=wrong)


class Raises:
    """An object that cannot be looked at."""

    def __getattr__(self, name):
        raise RuntimeError("no")

    def __str__(self):
        raise KeyError("no")

    def __len__(self):
        raise MemoryError


def kind(odd):
    return type(odd).__name__


ODD_ROWS = [{}, set(), object(), len, 10**400, [[10**400, 1.0]], np.matrix([[1.0, 2.0]]), Raises(), [[Raises(), 1.0]]]


@pytest.mark.parametrize("odd", ODD_ROWS, ids=kind)
@pytest.mark.parametrize("ask", ["fit", "predict", "certify", "attack", "score", "partial_fit"])
def test_rows_that_are_none_are_refused_by_heads(odd, ask):
    head = PolyReLUClassifier(epochs=1, random_state=0).fit(X, Y)
    given = (odd, [0, 1]) if ask in ("fit", "score", "partial_fit") else (odd,)
    with pytest.raises(InputError):
        getattr(head, ask)(*given)


@pytest.mark.parametrize("odd", [{}, set(), object(), len, Raises(), 10**400], ids=kind)
@pytest.mark.parametrize("name", ["y", "sample_weight", "fine_labels"])
def test_labels_and_weights_that_are_none_are_refused_by_heads(odd, name):
    with pytest.raises(InputError):
        PolyReLUClassifier(epochs=1).fit(X, **{"y": Y, name: odd})


@pytest.mark.parametrize("odd", [np.zeros(2), torch.zeros(2), Raises(), [1]], ids=kind)
@pytest.mark.parametrize("name", sorted(PolyReLUClassifier().get_params().keys() - {"random_state"}))
def test_settings_that_are_none_are_refused_by_heads(odd, name):
    with pytest.raises(InputError, match=name):
        PolyReLUClassifier(**{"epochs": 1, name: odd}).fit(X, Y)


@pytest.mark.parametrize("name", ["p", "rate", "scale", "until", "radius", "validation_fraction"])
def test_settings_that_no_float_holds_are_refused_by_heads(name):
    with pytest.raises(InputError, match=name):
        PolyReLUClassifier(**{"epochs": 1, name: 10**400}).fit(X, Y)


def test_scores_at_radii_that_no_float_holds_and_odd_switches():
    head = PolyReLUClassifier(epochs=1, random_state=0).fit(X, Y)
    assert head.robust_score(X, Y, 10**400) == 0
    with pytest.raises(InputError, match="attacked"):
        head.robust_score(X, Y, 0.1, attacked=np.array([]))


@pytest.mark.parametrize("odd", [np.zeros(2), torch.zeros(2), "yes", None, 2], ids=kind)
@pytest.mark.parametrize("name", ["bias", "normalise_input"])
def test_switches_of_nets_are_true_or_false(odd, name):
    with pytest.raises(InputError, match=name):
        PolyReLUNet(2, 3, **{name: odd})


def test_sizes_that_no_machine_counts_are_refused():
    with pytest.raises(InputError, match="dim"):
        FixedOutputNet(10**400, 2)


def test_objects_that_cannot_be_shown_are_refused_by_their_type():
    with pytest.raises(InputError, match="p=Raises: expected"):
        PolyReLUNet(2, 3, p=Raises())


def test_a_class_is_no_progress():
    with pytest.raises(InputError, match=r"a polyrelu\.progress\.Progress"):
        RobustnessReport.measure(LogisticRegression().fit(X, Y), X, Y, progress=np.float32)
