"""Classes read out from sub-classes: the maximum, the net of one sub-class against the others, files, bad input."""

from __future__ import annotations

import copy

import pytest
import torch

from polyrelu.errors import InputError
from polyrelu.nets import MLP, PolyReLUNet, ReadOut, load, logit_classes, save

OF = (1, 0, 1, 2)


def head(**settings):
    return PolyReLUNet(5, 7, 2.5, 4, bias=True, centre=torch.ones(5), seed=3, **settings)


def test_the_largest_logit_of_each_class():
    net = PolyReLUNet(3, 3, 3, 3, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.eye(3))
        net.output.copy_(torch.eye(3))
    read = ReadOut(net, [0, 1, 0])
    X = torch.tensor([[2.0, 1.0, -1.0], [0.0, 3.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(read(X), torch.tensor([[8.0, 1.0], [1.0, 27.0]], dtype=torch.float64))
    assert (read.dim, read.outputs, read.dtype) == (3, 2, torch.float64)


def test_the_class_of_each_logit():
    assert logit_classes(ReadOut(head(), OF)).tolist() == list(OF) and logit_classes(head()).tolist() == [0, 1, 2, 3]


def test_only_the_winner_has_a_gradient():
    net = head()
    X = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    logits = net(X)
    ReadOut(net, OF)(X)[:, 1].sum().backward()
    winner = torch.where(logits[:, 0] > logits[:, 2], 0, 2)
    expected = torch.zeros(4).index_add(0, winner, torch.ones(40))
    torch.testing.assert_close(net.bias.grad, expected)
    assert expected[0] > 0 and expected[2] > 0  # else the test says little


def test_one_sub_class_against_those_of_other_classes():
    read, X = ReadOut(head(), torch.tensor(OF)), torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = read.net(X)
        torch.testing.assert_close(read.against(2)(X), logits[:, [2, 1, 3]])
        torch.testing.assert_close(read.against(1)(X), logits[:, [1, 0, 2, 3]])
        read.against(2).output.zero_()  # a copy
        assert torch.equal(read.net(X), logits)


def test_another_type_and_a_copy_decide_alike():
    read, X = ReadOut(head(), OF), torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    double = copy.deepcopy(read).double()
    assert double.dtype == torch.float64 and read.dtype == torch.float32 and double.class_of.tolist() == list(OF)
    torch.testing.assert_close(double(X.double()), read(X).double(), rtol=1e-5, atol=1e-5)


def test_a_file_holds_it_and_a_changed_one_is_refused(tmp_path):
    read = ReadOut(head(), OF)
    path = save(read, tmp_path / "head.safetensors")
    X = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(load(path)(X), read(X))
    data = path.read_bytes()
    assert data.count(b"[1, 0, 1, 2]") == 1
    for wrong in (b"[1, 0, 1, 3]", b"[0, 0, 0, 0]", b"[1, 0, 1   ]", b"[1, 0, 1, x]"):
        path.write_bytes(data.replace(b"[1, 0, 1, 2]", wrong))
        with pytest.raises(InputError, match="do not fit ReadOut"):
            load(path)


@pytest.mark.parametrize(
    "of, message",
    [
        ((0, 1, 0), "of=3 classes: expected 4"),
        ((0, 0, 0, 0), "C >= 2"),
        ((0, 2, 0, 2), "each of them"),
        ((0, 1, -1, 0), "of=-1: expected a whole number >= 0"),
        ((0, 1, 0.5, 0), "of=0.5: expected a whole number"),
    ],
)
def test_classes_that_are_none(of, message):
    with pytest.raises(InputError, match=message):
        ReadOut(head(), of)


def test_other_nets_are_refused():
    with pytest.raises(InputError, match="net=MLP: expected a PolyReLUNet"):
        ReadOut(MLP(5, 4, 4), OF)
