"""The papers' bounds against exact radii, simulation, limits and each other."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import norm

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, NearestCentre, RobustClassifier
from polyrelu.robust import average_radius, centre_radius, dist, theory

N = 20_000
SAMPLING = 4 * 0.5 / math.sqrt(N)  # four standard errors of a frequency


def mixture(dim: int = 100, K1: int = 6, K2: int = 4, alpha: float = 2.0) -> OrthonormalMixture:
    return OrthonormalMixture(dim, K1, K2, alpha=alpha, dtype=torch.float64)


def share(event: torch.Tensor) -> float:
    return float(event.double().mean())


@pytest.mark.slow
@pytest.mark.parametrize(("K1", "K2", "alpha"), [(6, 4, 2.0), (6, 4, 4.0), (2, 9, 3.0)])
def test_exact_accuracy_of_the_average_classifier(K1, K2, alpha):
    mix = mixture(50, K1, K2, alpha)
    data, net = mix.sample(N, seed=1), AverageClassifier(mix.centres, mix.labels)
    radii = average_radius(data.X, data.y, mix.centres, mix.labels)
    direction = mix.labels @ mix.centres / math.sqrt(K1 + K2)
    for R in (0.0, 0.1, 0.3, 0.6):
        exact = theory.average_robust_accuracy(R, 50, K1, K2, alpha)
        assert exact == pytest.approx(share(radii > R), abs=SAMPLING)
        attacked = theory.average_attacked_accuracy(R, 50, K1, K2, alpha)
        assert attacked == pytest.approx(
            share(data.y * net(data.X - R * data.y[:, None] * direction) > 0), abs=SAMPLING
        )
        assert exact <= attacked + 1e-12  # one direction is a weaker attack than all
        rho = R * math.sqrt(K1 + K2) - 1
        assert attacked <= norm.cdf(-rho / alpha * math.sqrt(50 / (K1 + K2))) + 1e-12


def test_clean_accuracies_measured_before():
    # CLAIMS A1: D = 100, 6+4, alpha = 2, 3, 4
    exact = [theory.average_robust_accuracy(0, 100, 6, 4, alpha) for alpha in (2, 3, 4)]
    assert exact == pytest.approx([0.939, 0.833, 0.745], abs=0.01)


def test_at_small_noise_the_universal_attack_is_a_gaussian_tail():
    # the forgotten event s <= 0 has probability Phi(-sqrt(D/K1)/alpha) at most: 1e-23 here
    for rho in (-0.05, 0.0, 0.03):
        wanted = norm.cdf(-rho / 1.0 * math.sqrt(1000 / 10))
        found = theory.average_attacked_accuracy((1 + rho) / math.sqrt(10), 1000, 6, 4, 1.0)
        assert found == pytest.approx(wanted, abs=1e-9)
    assert theory.average_attacked_accuracy(1 / math.sqrt(10), 1000, 6, 4, 0.01) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0, 3.0])
def test_printed_bounds_on_the_average_classifier_hold_with_the_constants_proven(alpha):
    clean = theory.average_robust_accuracy(0, 100, 6, 4, alpha)
    assert theory.average_clean_bound(100, 10, alpha, C=2) <= clean
    assert alpha > 2 or theory.average_clean_bound(100, 10, alpha, C=2) > 0.4  # and says something
    for rho in (0.1, 0.5, 1.0):
        left = theory.average_attacked_accuracy((1 + rho) / math.sqrt(10), 100, 6, 4, alpha)
        assert left <= theory.average_attacked_bound(rho, 100, 10, alpha, C=0.5)
    assert theory.average_attacked_bound(1.0, 100, 10, 0.3, C=0.5) < 1e-20


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 6.0])
def test_bounds_on_the_centre_classifier_are_never_violated(p):
    alpha = 1.0
    mix = mixture(200, 3, 2, alpha)
    data = mix.sample(4000, seed=2)
    radii = centre_radius(data.X, data.y, mix.centres, mix.labels, p)
    at_centre = min(theory.centre_critical_radius(p, m) for m in (2, 3))
    for R in (0.0, 0.2, 0.4, 0.44):
        bound = theory.span_robust_bound(R, at_centre, 200, 5, alpha) if at_centre >= R else 0.0
        assert bound <= share(radii > R) + SAMPLING
    assert theory.span_robust_bound(0.2, at_centre, 200, 5, alpha) > 0.9  # not vacuous
    if p >= 2:
        assert theory.centre_clean_bound(200, 5, alpha, C=0.25) <= share(radii > 0)
        for delta in (0.4, 0.8, 1.2, math.sqrt(2)):
            sure = theory.centre_robust_bound(delta, 200, 5, alpha, C=5 / 4)
            assert sure <= share(radii > (math.sqrt(2) - delta) / 2) + SAMPLING
            assert theory.centre_robust_bound(delta, 200, 5, alpha, C=0.25) <= sure
            assert sure <= theory.span_robust_bound((math.sqrt(2) - delta) / 2, math.sqrt(2) / 2, 200, 5, alpha)
        assert theory.centre_robust_bound(1.2, 200, 5, alpha, C=5 / 4) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("K1", "K2"), [(6, 4), (1, 4), (3, 3)])
def test_no_classifier_keeps_more_than_the_impossibility_bound_allows(K1, K2):
    # nearest centre and F^(6) at radius sqrt(2)/2: a point is broken if half-way to some opposite centre breaks it
    mix = mixture(40, K1, K2, alpha=0.5)
    data = mix.sample(N, seed=3)
    net = NearestCentre(mix.centres, mix.labels)
    held = data.y * net(data.X) > 0
    for k in range(K1 + K2):
        step = mix.centres[k] - mix.centres[data.cluster]
        step = step / step.norm(dim=1, keepdim=True).clamp(min=1e-9)
        held &= (data.y * net(data.X + math.sqrt(2) / 2 * step) > 0) | (mix.labels[k] == data.y)
    assert share(~held) >= theory.impossibility_bound(K1, K2) - SAMPLING
    few = data.X[:2000], data.y[:2000]
    radii = centre_radius(*few, mix.centres, mix.labels, 6)
    assert share(radii <= math.sqrt(2) / 2) >= theory.impossibility_bound(K1, K2) - 0.05
    assert theory.impossibility_bound(6, 4) == 0.4 and theory.impossibility_bound(1, 4) == 0.2


def test_bayes_bound_on_the_nearest_centre_rule():
    # half the gap between the two largest coordinates over sqrt(2) is the radius of the nearest-centre rule
    dim, K, alpha = 2000, 10, 0.5
    data = mixture(dim, 5, 5, alpha).sample(2000, seed=4)
    coordinates = data.X[:, :K]
    own = torch.where(data.y[:, None] > 0, coordinates[:, :5].amax(1)[:, None], coordinates[:, 5:].amax(1)[:, None])[
        :, 0
    ]
    other = torch.where(data.y > 0, coordinates[:, 5:].amax(1), coordinates[:, :5].amax(1))
    radii = (own - other) / math.sqrt(2)
    for nu in (0.05, 0.2, 0.4, 1.0):
        assert theory.bayes_robust_bound(nu, dim, K, alpha) <= share(radii > (math.sqrt(2) - nu) / 2)
    assert theory.bayes_robust_bound(0.4, dim, K, alpha) > 0.9999
    least = 2 * math.sqrt(2) * alpha**2 * math.log(K) / dim
    assert theory.bayes_robust_bound(1.01 * least, dim, K, alpha) == 0  # allowed, but vacuous
    for nu in (least * 0.99, 1.5):
        with pytest.raises(InputError, match="nu="):
            theory.bayes_robust_bound(nu, dim, K, alpha)


def test_closeness_implies_robustness_on_a_perturbed_net():
    # F^(3) with coefficients 1 +- .004: at distance .004, promised radius .072 (Prop. 3)
    mix = mixture(400, 3, 2, alpha=0.2)
    F = CentreClassifier(mix.centres, mix.labels, 3)
    f = F.as_polyrelu_net()
    with torch.no_grad():
        f.output[0, :2] *= torch.tensor([1.004, 0.996], dtype=torch.float64)
    nu = dist(f, F, c=1).value
    assert nu == pytest.approx(0.004, rel=1e-6)
    R = theory.closeness_radius(nu, 3)
    assert R == pytest.approx((math.sqrt(2) - 8 * 0.004 ** (1 / 3)) / 2)
    data = mix.sample(500, seed=5)
    bound = theory.closeness_bound(nu, 3, 400, 5, 0.2)
    assert bound > 0.9
    # with a = <x, mu_k> and b = opposite coordinates, y f(x + d) >= .996 (a - R)^3 - 1.004 (|b_+| + R)^3 for |d| <= R
    coordinates = data.X @ mix.centres.T
    own = coordinates[torch.arange(500), data.cluster]
    other = coordinates.clamp(min=0).masked_fill(mix.labels == data.y[:, None], 0).norm(dim=1)
    assert share(0.996 * (own - R) ** 3 > 1.004 * (other + R) ** 3) >= bound
    assert theory.closeness_radius((math.sqrt(2) / 8) ** 3, 3) == pytest.approx(0, abs=1e-9)
    assert (math.sqrt(2) / 8) ** 3 == pytest.approx(0.00552, abs=1e-5)
    for nu, p in ((0.006, 3), (0, 3), (0.001, 2)):
        with pytest.raises(InputError):
            theory.closeness_bound(nu, p, 400, 5, 0.2)
    assert theory.closeness_bound(0.004, 3, 10**9, 5, 0.53) == 0  # vacuous for alpha >= .52 whatever D
    assert theory.closeness_bound(0.004, 3, 10**9, 5, 0.50) > 0


def test_lipschitz_radius_is_below_the_exact_one():
    # F is sqrt(max(K1, K2))-Lipschitz in each half and sqrt(K) across: q/sqrt(K) never exceeds the radius
    mix = mixture(100, 6, 4, 2.0)
    data = mix.sample(500, seed=6)
    margins = data.y * AverageClassifier(mix.centres, mix.labels)(data.X)
    radii = average_radius(data.X, data.y, mix.centres, mix.labels)
    for q, r in zip(margins.tolist(), radii.tolist(), strict=True):
        assert theory.margin_over_lipschitz(q, math.sqrt(10)) <= r + 1e-12
    assert theory.margin_over_lipschitz(1.0, math.sqrt(10)) == pytest.approx(theory.average_critical_radius(10))
    assert theory.margin_over_lipschitz(-1.0, 2.0) == 0


def test_monotone_and_with_the_right_limits():
    for bound in (
        lambda D: theory.average_clean_bound(D, 10, 1.0, C=2),
        lambda D: theory.centre_clean_bound(D, 10, 1.0, C=0.25),
        lambda D: theory.centre_robust_bound(0.5, D, 10, 1.0, C=0.25),
        lambda D: theory.span_robust_bound(0.4, 0.7, D, 10, 1.0),
        lambda D: theory.bayes_robust_bound(0.5, D, 10, 1.0),
        lambda D: theory.closeness_bound(0.004, 3, D, 10, 0.1),
        lambda D: theory.average_robust_accuracy(0.2, D, 6, 4, 1.0),
        lambda D: 1 - theory.average_attacked_bound(0.5, D, 10, 1.0, C=0.5),
    ):
        values = [bound(D) for D in (20, 100, 1000, 10**4, 10**6)]
        assert values == sorted(values) and 0 <= values[0] < 0.9 and values[-1] == pytest.approx(1, abs=1e-6)


def test_bad_arguments_are_named():
    for call, name in (
        (lambda: theory.average_clean_bound(100, 10, 0, C=2), "alpha"),
        (lambda: theory.average_clean_bound(5, 10, 1, C=2), "dim"),
        (lambda: theory.average_clean_bound(100, 10, 1, C=0), "C="),
        (lambda: theory.average_attacked_bound(0, 100, 10, 1, C=0.5), "rho"),
        (lambda: theory.centre_robust_bound(1.5, 100, 10, 1, C=0.25), "delta"),
        (lambda: theory.span_robust_bound(0.8, 0.7, 100, 10, 1), "radius"),
        (lambda: theory.average_robust_accuracy(0.1, 100, 0, 4, 1), "positive"),
        (lambda: theory.impossibility_bound(0, 4), "positive"),
        (lambda: theory.flip_radius(0.5, 1), "p="),
        (lambda: theory.margin_over_lipschitz(1, 0), "lipschitz"),
        (lambda: theory.feature_decoupling_radius(10, 2, "mean"), "readout"),
        (lambda: theory.universal_perturbation_bound(100, 10, 0.6, C=1), "balance"),
        (lambda: theory.universal_perturbation_samples(20, 4, 1e-9, 0.5), "delta"),
    ):
        with pytest.raises(InputError, match=name):
            call()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_squares_that_no_float_holds_are_refused(size):
    with pytest.raises(InputError, match=r"rho=.*so that float64 holds its square"):
        theory.average_attacked_bound(size, 1000, 10, 0.1, 0.5)
    with pytest.raises(InputError, match=r"alpha=.*so that float64 holds its square"):
        theory.average_attacked_accuracy(0.5, 1000, 6, 4, size)
    with pytest.raises(InputError, match=r"alpha=.*so that float64 holds its square"):
        theory.closeness_bound(1e-3, 3, 1000, 10, size)
    assert theory.span_robust_bound(0.1, max(size, 1.0), 1000, 10, 0.1) == 1


def test_critical_radii():
    assert theory.average_critical_radius(10) == pytest.approx(0.31623, abs=1e-5)
    for p in (1, 1.5, 2, 2.5, 4):
        centres, labels = torch.eye(9, dtype=torch.float64), torch.tensor([1.0] * 4 + [-1.0] * 5)
        radius = centre_radius(centres[:1], labels[:1], centres, labels, p).item()
        assert theory.centre_critical_radius(p, 5) == pytest.approx(radius, rel=1e-12)
    assert theory.flip_radius(1, 4) == pytest.approx(1 / math.sqrt(5)) and theory.flip_radius(2, 7) == pytest.approx(
        math.sqrt(0.5)
    )
    assert theory.flip_radius(4, 3) > theory.flip_radius(4, 1) == pytest.approx(math.sqrt(0.5))
    assert theory.trained_radius(1e-9, 3, C=1) == pytest.approx(math.sqrt(0.5), abs=1e-5)
    assert theory.trained_radius(1, 3, C=1) == 0


def test_feature_and_hand_built_radii():
    # d = 3072, k = 10, five opposite centres
    assert theory.feature_averaging_radius(3072, 10) == pytest.approx(17.5, abs=0.05)
    assert theory.feature_decoupling_radius(3072, 5) == pytest.approx(39.2, abs=0.05)
    assert theory.feature_decoupling_radius(3072, 5, "sum") == pytest.approx(22.6, abs=0.05)
    zero, flip = theory.hand_built_radii(16)
    centres = 4 * torch.eye(4, 16, dtype=torch.float64)
    net = RobustClassifier(centres, torch.tensor([1.0, 1.0, -1.0, -1.0]))
    inward, across = -centres[0] / 4, (centres[2] - centres[0]) / (4 * math.sqrt(2))
    values = net(torch.stack([centres[0] + r * inward for r in (zero - 1e-6, zero)]))
    assert values[0] > 0 and values[1] == 0
    values = net(torch.stack([centres[0] + r * across for r in (flip - 1e-6, flip + 1e-6)]))
    assert values[0] >= 0 > values[1]
    # |z| for F itself, balanced: sqrt(d/k)
    assert theory.universal_perturbation_bound(3072, 10, 0.5, C=0.5) == pytest.approx(17.5, abs=0.05)
    low, high = theory.universal_perturbation_samples(3072, 10, 0.1, 0.1)
    assert low == pytest.approx(10 * math.log(3072) ** 2)
    # the three limits in turn are e^94, 1e6 and 2.4e12; the second is sqrt(.1)/3 3072^(ln(3072)/4)
    assert high == pytest.approx(math.sqrt(0.1) / 3 * 3072 ** (math.log(3072) / 4))
    assert theory.universal_perturbation_samples(20, 4, 0.9, 0.5)[1] < 4 * math.log(20) ** 2  # says nothing
