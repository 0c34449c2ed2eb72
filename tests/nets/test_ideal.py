"""The ideal classifiers at points where their values and radii are known exactly."""

from __future__ import annotations

import math

import pytest
import torch
from mpmath import mp, mpf
from torch import Tensor

from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, BayesClassifier, CentreClassifier, NearestCentre, RobustClassifier
from polyrelu.nets.ideal import _log_norm, exact_sums

CASES = [(6, 4), (4, 6), (1, 1), (3, 7)]


def mixture(K1: int, K2: int, dim: int = 12, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Orthonormal centres in a random position and their labels."""
    X = torch.randn(dim, dim, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    labels = torch.tensor([1.0] * K1 + [-1.0] * K2, dtype=torch.float64)
    return torch.linalg.qr(X).Q[: K1 + K2].to(dtype), labels.to(dtype)


def sphere(n: int, dim: int = 12, seed: int = 0) -> Tensor:
    X = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return X / X.norm(dim=1, keepdim=True)


def flips(net, x: Tensor, direction: Tensor, radius: float) -> bool:
    """Whether the score is exactly 0 at ``radius`` along ``direction``, own-signed before and opposite after."""
    steps = radius + torch.tensor([-1e-6, 0.0, 1e-6], dtype=x.dtype)
    before, at, after = net(x + steps[:, None] * direction / direction.norm())
    sign = torch.sign(net(x[None])[0])
    return bool(sign * before > 0 and abs(at) < 1e-9 and sign * after < 0)


@pytest.mark.parametrize(("K1", "K2"), CASES)
def test_average_sup_on_the_sphere_is_reached_at_a_class_average(K1, K2):
    centres, labels = mixture(K1, K2)
    net = AverageClassifier(centres, labels)
    # <x, mu_+-> <= |mu_+-| = sqrt(K1), sqrt(K2), and the average of a class has F = +-|mu_+-|
    averages = net.sums() / net.sums().norm(dim=1, keepdim=True)
    values = net(averages)
    assert values[0].item() == pytest.approx(math.sqrt(K1)) and values[1].item() == pytest.approx(-math.sqrt(K2))
    assert net(sphere(2000)).abs().max() <= math.sqrt(max(K1, K2))


@pytest.mark.parametrize(("K1", "K2"), CASES)
def test_average_flips_every_centre_along_one_direction(K1, K2):
    centres, labels = mixture(K1, K2)
    net = AverageClassifier(centres, labels)
    torch.testing.assert_close(net(centres), labels)
    universal = labels @ centres  # x - y r d0: F goes from y to y - y r sqrt(K), both halves counted
    for x, y in zip(centres, labels, strict=True):
        assert flips(net, x, -y * universal, 1 / math.sqrt(K1 + K2))
    for d in sphere(200):  # and nothing flips nearer
        shifted = centres + (1 / math.sqrt(K1 + K2) - 1e-9) * d
        assert (labels * net(shifted) > 0).all()


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.5])
@pytest.mark.parametrize(("K1", "K2"), CASES)
def test_centre_classifier_values_and_radii(p, K1, K2):
    centres, labels = mixture(K1, K2)
    net = CentreClassifier(centres, labels, p)
    torch.testing.assert_close(net(centres), labels)
    # with t on the own and s on each of m opposite centres, F^(p) = 0 where t = m^(1/p) s; nearest such point:
    for m in range(1, K2 + 1):
        s = m ** (1 / p) / (m ** (2 / p) + m)
        target = m ** (1 / p) * s * centres[0] + s * centres[K1 : K1 + m].sum(dim=0)
        radius = 1 / math.sqrt(1 + m ** (2 / p - 1))
        assert (target - centres[0]).norm().item() == pytest.approx(radius, abs=1e-12)
        assert flips(net, centres[0], target - centres[0], radius)
    smallest = math.sqrt(0.5) if p >= 2 else 1 / math.sqrt(1 + K2 ** (2 / p - 1))
    assert (net(centres[0] + (smallest - 1e-9) * sphere(2000)) > 0).all()
    bound = max(K1, K2) ** max(0.0, 1 - p / 2)
    assert net(sphere(2000)).abs().max() <= bound + 1e-12
    average = centres[:K1].sum(dim=0) / math.sqrt(K1)
    assert net(average[None]).item() == pytest.approx(K1 ** (1 - p / 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, 3.0])
def test_as_polyrelu_net_is_the_same_function(p, dtype):
    centres, labels = mixture(6, 4, dtype=dtype)
    centres = centres * torch.linspace(0.5, 2, 10, dtype=dtype)[:, None]
    X = sphere(50).to(dtype)
    for ideal in (AverageClassifier(centres, labels), CentreClassifier(centres, labels, p)):
        net = ideal.as_polyrelu_net()
        assert net.dtype == dtype and net.p == getattr(ideal, "p", 1.0)
        torch.testing.assert_close(net(X), ideal(X))


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("unequal", [False, True])
def test_bayes_is_the_log_ratio_of_the_densities(alpha, unequal):
    centres, labels = mixture(3, 2, dim=5)
    if unequal:
        centres = centres * torch.linspace(0.5, 2, 5, dtype=torch.float64)[:, None]
    X = 1.5 * sphere(200, 5)
    squares = (X[:, None] - centres).square().sum(dim=2)
    density = torch.exp(-5 * squares / (2 * alpha**2))
    direct = (density[:, labels > 0].sum(dim=1) / density[:, labels < 0].sum(dim=1)).log()
    torch.testing.assert_close(BayesClassifier(centres, labels, alpha)(X), direct, rtol=1e-10, atol=1e-10)
    if not unequal:
        powers = torch.exp(5 * (X @ centres.T) / alpha**2)
        assert torch.equal(torch.sign(powers @ labels), torch.sign(BayesClassifier(centres, labels, alpha)(X)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bayes_at_a_centre_and_no_overflow(dtype):
    centres, labels = torch.eye(1000, dtype=dtype)[:10], torch.tensor([1] * 6 + [-1] * 4)
    net = BayesClassifier(centres, labels, 0.01)  # exponents 1e7
    X = centres.clone().requires_grad_()
    out = net(X)
    out.sum().backward()
    assert out.isfinite().all() and X.grad.isfinite().all()
    assert torch.equal(torch.sign(out), labels.to(dtype))
    mild = BayesClassifier(torch.eye(10, dtype=dtype), labels, 2.0)(torch.eye(10, dtype=dtype))
    assert mild[0].item() == pytest.approx(math.log(math.exp(10 / 4) + 5) - math.log(4), rel=1e-5)
    assert mild[9].item() == pytest.approx(-math.log(math.exp(10 / 4) + 3) + math.log(6), rel=1e-5)


def test_two_centres_have_radius_half_their_distance():
    centres, labels = mixture(1, 1)
    for net in (BayesClassifier(centres, labels, 0.5), NearestCentre(centres, labels)):
        assert flips(net, centres[0], centres[1] - centres[0], math.sqrt(0.5))
        assert (net(centres[0] + (math.sqrt(0.5) - 1e-9) * sphere(500)) > 0).all()


def test_nearest_centre_is_the_rule_and_the_limit_of_bayes():
    centres, labels = mixture(6, 4)
    centres = centres * torch.linspace(0.5, 2, 10, dtype=torch.float64)[:, None]
    net, X = NearestCentre(centres, labels), sphere(300)
    distances = torch.cdist(X, centres)
    expected = distances[:, labels < 0].amin(dim=1).square() - distances[:, labels > 0].amin(dim=1).square()
    torch.testing.assert_close(net(X), expected / 2)
    limit = BayesClassifier(centres, labels, 1e-3)(X) * 1e-6 / 12
    torch.testing.assert_close(limit, net(X), rtol=0, atol=1e-6)
    unit, y = mixture(6, 4)
    torch.testing.assert_close(NearestCentre(unit, y)(unit), y)
    assert flips(NearestCentre(unit, y), unit[0], unit[7] - unit[0], math.sqrt(0.5))


def test_robust_net_reaches_zero_at_half_the_norm_and_flips_at_seven_tenths():
    centres, labels = mixture(6, 4)
    centres = centres * math.sqrt(12)  # |mu| = sqrt(d)
    net = RobustClassifier(centres, labels)
    hidden = (centres @ (4 * centres / 12).T - 2).relu()
    torch.testing.assert_close(net(centres), hidden @ labels)
    torch.testing.assert_close(net(centres), 2 * labels)
    towards_origin = -centres[0] / centres[0].norm()
    values = net(centres[0] + torch.tensor([0.499, 0.5, 0.6])[:, None].double() * math.sqrt(12) * towards_origin)
    assert values[0] > 0 and abs(values[1]) < 1e-12 and values[2] == 0
    towards_other = (centres[7] - centres[0]) / (centres[7] - centres[0]).norm()
    values = net(centres[0] + (math.sqrt(6) + torch.tensor([-1e-6, 1e-6]))[:, None].double() * towards_other)
    assert values[0] >= 0 > values[1]
    assert (net(centres[0] + 0.4999 * math.sqrt(12) * sphere(2000)) > 0).all()


@pytest.mark.parametrize(
    "kind", [AverageClassifier, CentreClassifier, BayesClassifier, NearestCentre, RobustClassifier]
)
def test_ideals_follow_dtype_and_check_their_inputs(kind):
    centres, labels = mixture(2, 2)
    X = sphere(9)
    net = kind(centres.float().numpy(), labels.int().numpy())
    assert net(X.float()).shape == (9,) and net(X.float()).dtype == torch.float32
    torch.testing.assert_close(net.double()(X), kind(centres, labels)(X), rtol=1e-3, atol=1e-3)
    assert not list(net.parameters())
    for bad, message in [
        ((centres[0], labels), r"centres.shape=\(12,\): expected \(K, dim\)"),
        ((centres, labels[:3]), r"labels.shape=\(3,\): expected \(4,\)"),
        ((centres, labels.abs()), r"labels=\[1.0\]: expected \+1 and -1"),
        ((centres, torch.tensor([0, 1, 0, 1])), r"labels=\[0, 1\]: expected \+1 and -1"),
        ((centres * math.nan, labels), "centres=NaN or inf"),
        ((torch.eye(4, dtype=torch.int64), labels), "dtype=torch.int64"),
    ]:
        with pytest.raises(InputError, match=message):
            kind(*bad)
    with pytest.raises(InputError, match=r"X of shape \(9, 5\)"):
        net(X[:, :5])


def test_ideal_parameters_are_checked():
    centres, labels = mixture(2, 2)
    with pytest.raises(InputError, match=r"p=0\.9: expected a finite number >= 1"):
        CentreClassifier(centres, labels, 0.9)
    with pytest.raises(InputError, match="alpha=0: expected a finite number > 0"):
        BayesClassifier(centres, labels, 0)


def test_sums_of_a_class_keep_what_is_left_when_large_numbers_cancel():
    centres = torch.tensor([[1e8], [1.0], [-1e8], [1.0]])
    found = exact_sums(centres, torch.tensor([1.0, 1.0, 1.0, -1.0]))
    assert found.dtype == torch.float32 and found.tolist() == [[1.0], [1.0]]
    column = torch.tensor([[1e200], [1e100], [1.0], [-1e100], [-1e200], [3.0]], dtype=torch.float64)
    assert exact_sums(column, torch.tensor([1.0] * 5 + [-1.0])).tolist() == [[1.0], [3.0]]


def test_logarithms_of_lengths_have_more_digits_than_float64():
    rows = torch.randn(40, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with mp.workdps(60):
        for row in rows * 10.0 ** torch.linspace(-300, 300, 40, dtype=torch.float64)[:, None]:
            exact = mp.log(mp.fsum(mpf(part) ** 2 for part in row.tolist())) / 2
            assert abs(mpf(str(_log_norm(row))) - exact) < 1e-25
