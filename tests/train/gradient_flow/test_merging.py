"""Merging and dropping: the stated bound, exactness where it is promised, and which neurons are merged."""

import numpy as np
import pytest
import torch

from polyrelu import Dataset, OrthonormalMixture, PolyReLUNet, Status, Until, flow
from polyrelu.train.gradient_flow.merging import MergeState
from polyrelu.train.gradient_flow.polar_field import PolarState

F64 = torch.float64


def bundle(p, spread, outputs=1, width=60, dim=6, seed=0):
    """Neurons scattered by about ``spread`` radians around four directions."""
    generator = torch.Generator().manual_seed(seed)
    net = PolyReLUNet(dim, width, p, outputs=outputs, init="balanced", seed=seed, dtype=F64)
    centres = torch.randn(4, dim, generator=generator, dtype=F64)
    centres /= centres.norm(dim=1, keepdim=True)
    group = torch.arange(width) % 4
    directions = centres[group] + spread * torch.randn(width, dim, generator=generator, dtype=F64) / dim**0.5
    norms = torch.rand(width, 1, generator=generator, dtype=F64) + 0.1
    net.weight.data = directions / directions.norm(dim=1, keepdim=True) * norms
    columns = torch.randn(4, outputs, generator=generator, dtype=F64)[group]
    net.output.data = (columns / columns.norm(dim=1, keepdim=True) * norms).T.contiguous()
    return net


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
def test_merging_changes_f_by_no_more_than_the_stated_bound(p, outputs):
    net = bundle(p, 0.012, outputs)
    state = PolarState.from_polar(net.polar(), torch.zeros(outputs, dtype=F64))
    bound = 0.1
    merged, merging, _ = MergeState.unmerged(state).merged(state, p, bound)
    assert len(merged.kappa) < 20
    small = PolyReLUNet.from_polar(merged.polar(), like=net)
    whole = PolyReLUNet.from_polar(merging.whole(merged).polar(), like=net)
    x = torch.randn(4000, 6, generator=torch.Generator().manual_seed(1), dtype=F64)
    x = torch.cat([x, net.weight.detach()])
    allowed = bound * net.contributions().sum() * x.norm(dim=1) ** p
    with torch.no_grad():
        f, g, h = (n(x).reshape(len(x), -1) for n in (net, small, whole))
    gap = (f - g).norm(dim=1)
    assert (gap <= allowed).all()
    assert float(gap.max()) > 0  # something was merged that was not the same
    assert torch.allclose(g, h, atol=1e-12)  # written out again, the merged network is the same function
    assert torch.allclose(merging.log_contribution(merged).exp(), net.contributions(), rtol=1e-9)


def test_nothing_merges_across_signs_or_beyond_the_bound():
    net = bundle(3.0, 0.0)
    net.output.data[0, ::3] *= -1
    state = PolarState.from_polar(net.polar(), torch.zeros(1, dtype=F64))
    merged, merging, _ = MergeState.unmerged(state).merged(state, 3.0, 1e-3)
    assert len(merged.kappa) == 8  # four directions, two signs
    signs = net.polar().q[:, 0]
    for row in range(len(merged.kappa)):
        assert len(set(signs[merging.row == row].tolist())) == 1
    wide = PolarState.from_polar(bundle(3.0, 0.5).polar(), torch.zeros(1, dtype=F64))
    assert len(MergeState.unmerged(wide).merged(wide, 3.0, 1e-3)[0].kappa) == 60


def test_dropping_keeps_inactive_neurons_in_place():
    state = PolarState.from_polar(bundle(2.0, 0.3).polar(), torch.zeros(1, dtype=F64))
    idle = torch.zeros(60, dtype=torch.bool)
    idle[[3, 17]] = True
    moving, merging = MergeState.unmerged(state).without(state, idle)
    assert len(moving.kappa) == 58
    whole = merging.whole(moving)
    assert torch.equal(whole.u, state.u)
    assert torch.equal(whole.kappa, state.kappa)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_run_with_merging_and_dropping_agrees_with_the_full_run(p):
    data = OrthonormalMixture(dim=50, positive=3, negative=2, alpha=0.1, dtype=F64).sample(1500, seed=1)
    net = PolyReLUNet(50, 120, p, init="balanced", scale=1e-6, seed=3, dtype=F64)
    until, rtol = Until(time={1.0: 45.0, 3.0: 110.0}[p]), 3e-3
    full = flow(net, data, until=until, rtol=rtol, merge=False, drop=False)
    less = flow(net, data, until=until, rtol=rtol)
    assert less.counts["moving"] < 60
    with torch.no_grad():
        f, g = full.net(data.rows()).numpy(), less.net(data.rows()).numpy()
    bound = rtol * float(full.net.contributions().sum()) * float(data.rows().norm(dim=1).max()) ** p
    assert np.abs(f).max() > 0.5
    assert np.abs(f - g).max() <= bound


def test_neurons_no_sample_activates_are_left_exactly_as_they_were():
    data = OrthonormalMixture(dim=8, positive=1, negative=1, alpha=0.01, dtype=F64).sample(64, seed=1)
    net = PolyReLUNet(8, 40, 3.0, init="balanced", scale=1e-4, seed=3, dtype=F64)
    asleep = (data.rows() @ net.weight.T).amax(0) <= 0
    assert 0 < int(asleep.sum()) < 40
    for drop in (False, True):
        out = flow(net, data, until=1e-1, drop=drop)
        assert torch.allclose(out.net.weight[asleep], net.weight[asleep], rtol=1e-12, atol=0)
        assert torch.allclose(out.net.contributions()[asleep], net.contributions()[asleep], rtol=1e-12)
    assert out.counts["inactive"] >= int(asleep.sum())


def test_two_neurons_merge_just_within_the_bound_and_their_gap_at_a_gate_is_known():
    # Two equal neurons an angle t apart, p = 1, merged to u between them. On its gate, <x, u> = 0, the merged net is 0
    # and of the two exactly one is on: the gap is |x| sin(t/2), of first order in t as the bound must allow.
    t = 0.04
    net = PolyReLUNet(2, 2, 1.0, init="zeros", dtype=F64)
    net.weight.data = torch.tensor([[1.0, 0.0], [np.cos(t), np.sin(t)]], dtype=F64)
    net.output.data = torch.ones(1, 2, dtype=F64)
    state = PolarState.from_polar(net.polar(), torch.zeros(1, dtype=F64))
    merged, _, _ = MergeState.unmerged(state).merged(state, 1.0, 2 * t * 1.01)
    assert len(merged.kappa) == 1
    x = torch.tensor([[-np.sin(t / 2), np.cos(t / 2)]], dtype=F64)  # on the gate of the merged neuron
    small = PolyReLUNet.from_polar(merged.polar(), like=net)
    with torch.no_grad():
        gap = float((net(x) - small(x)).abs())
    allowed = 2 * t * 1.01 * float(net.contributions().sum())
    assert gap == pytest.approx(np.sin(t / 2), rel=1e-6)
    assert gap <= allowed
    # just wider than the bound allows: they stay apart
    assert len(MergeState.unmerged(state).merged(state, 1.0, 2 * t * 0.99)[0].kappa) == 2


@pytest.mark.parametrize("loss", ["exp", "squared"])
def test_a_neuron_that_fits_exactly_is_not_mistaken_for_an_inactive_one(loss):
    # Neuron 0 has gradient zero (squared: no gap; exp, float32: its sample's weight underflows) but carries f.
    dtype, norm = (F64, 1.0) if loss == "squared" else (torch.float32, 11.0)
    net = PolyReLUNet(2, 2, 2.0, init="zeros", dtype=dtype)
    net.weight.data = torch.tensor([[norm, 0.0], [0.0, 0.3]], dtype=dtype)
    net.output.data = torch.tensor([[norm, -0.3]], dtype=dtype)
    data = Dataset(torch.eye(2, dtype=dtype), torch.tensor([1.0, -1.0]))
    out = flow(net, data, loss=loss, until=1e-3)
    assert out.status is Status.LOSS
    f = out.net(data.rows()).detach()
    true = ((data.y - f) ** 2 / 2).mean() if loss == "squared" else torch.exp(-data.y * f).mean()
    assert out.log_loss == pytest.approx(float(true.log()), abs=1e-4)
