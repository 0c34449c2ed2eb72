"""Corner cases of `polyrelu.flow`, each of which once gave a wrong number or a crash."""

import importlib

import pytest
import torch

from polyrelu import InputError, OrthonormalMixture, PolyReLUNet, Status, Until, flow

F64 = torch.float64


@pytest.fixture
def blobs():
    return OrthonormalMixture(dim=6, positive=1, negative=1, alpha=0.1, dtype=F64).sample(60, seed=0)


def test_frozen_layers_of_a_polyrelu_net_are_refused(blobs):
    net = PolyReLUNet(6, 4, 1.0, scale=0.1, dtype=F64)
    net.output.requires_grad_(False)
    with pytest.raises(InputError, match=r"frozen output.*descend"):
        flow(net, blobs)


def test_an_interrupt_between_phases_keeps_the_run(monkeypatch, blobs):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("polyrelu.train.gradient_flow.flow"), "ready", stop)
    out = flow(PolyReLUNet(6, 20, 3.0, init="balanced", scale=0.1, dtype=F64), blobs, until=Until(log10_loss=-50))
    assert out.status is Status.INTERRUPTED and out.log10_loss < -4
