import math

import pytest
import torch

from polyrelu.bias import class_sums, flip_radii, gradient_to_margin, universal
from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet

MIX = OrthonormalMixture(40, 6, 4, 0.1, rotate=3, dtype=torch.float64)
MU, Y = MIX.centres, MIX.labels


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def correlated(seed):
    lengths = torch.linspace(0.7, 1.5, 10).double()[:, None]
    return lengths * (MU + 0.15 * draw(10, 40, seed=seed))


def several(sums, centre=None):
    """f_c = relu<x - centre, S_c>."""
    C, dim = sums.shape
    net = PolyReLUNet(dim, C, 1.0, C, centre=centre, init="zeros", dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(sums)
        net.output.copy_(torch.eye(C))
    return net


@pytest.mark.parametrize("scale", [1.0, 40**0.5])
def test_orthonormal_centres_break_at_one_over_the_root_of_their_number(scale):
    found = universal(scale * MU, Y, AverageClassifier(MU, Y))
    torch.testing.assert_close(found.direction, Y @ MU / math.sqrt(10))
    expected = torch.full((10,), scale / math.sqrt(10)).double()
    torch.testing.assert_close(found.predicted, expected)
    torch.testing.assert_close(found.measured, expected)
    assert found.radius == pytest.approx(scale / math.sqrt(10))


@pytest.mark.parametrize("seed", range(4))
def test_general_formula_is_the_gram_matrix_and_what_the_average_classifier_does(seed):
    centres = correlated(seed)
    found = universal(centres, Y, AverageClassifier(centres, Y))
    G = centres @ centres.T
    torch.testing.assert_close(found.predicted, (Y * (G @ Y) / (Y @ G @ Y).sqrt()).clamp(min=0))
    assert (found.predicted > 0).sum() >= 8
    torch.testing.assert_close(found.measured, found.predicted)


def test_the_own_sum_may_vanish_first():
    # S_+ = (.1, 2), S_- = (-3, 0), S = (3.1, 2): from (1, 0) <x, S_+> = .1 falls by <S, S_+>/|S| = 4.31/|S|, so it is 0
    # at r = .1 |S|/4.31, long before it meets <x, S_-> at 3.1/|S|
    centres = torch.tensor([[1, 0], [-0.9, 2], [-3, 0]]).double()
    y = torch.tensor([1, 1, -1]).double()
    found = universal(centres, y, AverageClassifier(centres, y))
    assert found.predicted[0] == pytest.approx(0.1 * math.hypot(3.1, 2) / 4.31)
    torch.testing.assert_close(found.measured, found.predicted)


def test_a_wrong_centre_has_radius_0_and_a_constant_net_never_breaks():
    centres, y = torch.tensor([[1, 0], [-0.5, 0], [0, 1]]).double(), torch.tensor([1, 1, -1]).double()
    found = universal(centres, y, AverageClassifier(centres, y))
    assert found.predicted[1] == found.measured[1] == 0 and found.predicted[0] > 0
    never = universal(MU, Y, lambda X: torch.where(X @ (Y @ MU) > -1e9, 1.0, -1.0))
    assert never.measured[Y > 0].isinf().all() and (never.measured[Y < 0] == 0).all()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_centre_classifiers_break_along_d0_where_the_powers_meet(p):
    # from mu_k: (1 - r/sqrt(K))^p = K_opp (r/sqrt(K))^p, so r = sqrt(K)/(1 + K_opp^(1/p))
    found = universal(MU, Y, CentreClassifier(MU, Y, p)).measured
    opposite = torch.where(Y > 0, 4.0, 6.0).double()
    torch.testing.assert_close(found, math.sqrt(10) / (1 + opposite ** (1 / p)))


@pytest.mark.parametrize("shift", [None, draw(40, seed=9)])
def test_several_classes_take_the_nearest_pair(shift):
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    centres = correlated(5)
    raw = centres if shift is None else centres + shift
    _, sums = class_sums(centres, labels)
    found = universal(raw, labels, several(sums, shift))
    torch.testing.assert_close(found.measured, found.predicted)
    pairs = [(sums[a] - sums[b]) / (sums[a] - sums[b]).norm() for a in range(3) for b in range(3) if a != b]
    by_hand = torch.stack([centres @ way for way in pairs]).reshape(3, 2, 10)
    torch.testing.assert_close(found.predicted, by_hand.amin(dim=1)[labels, torch.arange(10)])
    with pytest.raises(InputError, match="each pair"):
        _ = found.direction


def test_the_median_of_noisy_points_is_the_prediction():
    data = MIX.sample(500, seed=2)
    found = universal(MU, Y)
    way = -data.y[:, None] * found.direction
    radii = flip_radii(AverageClassifier(MU, Y), data.rows(), data.y, way, torch.full((500,), 2.0))
    assert float(radii.median()) == pytest.approx(found.radius, rel=0.02) and found.measured is None


def test_float32_nets_are_asked_in_float32():
    net = AverageClassifier(MU.float(), Y.float())
    assert universal(MU, Y, net).radius == pytest.approx(10**-0.5, rel=1e-5)


def test_gradient_to_margin_of_averages_and_of_single_centres():
    e = torch.eye(10, 40).double()  # exact zeros at the other class's centres, where relu has slope 0
    ratio = gradient_to_margin(AverageClassifier(e, Y), e, Y)
    torch.testing.assert_close(ratio, torch.where(Y > 0, 6.0, 4.0).double().sqrt())
    torch.testing.assert_close(gradient_to_margin(CentreClassifier(e, Y, 1.0), e, Y), torch.ones(10).double())


@pytest.mark.parametrize("outputs", [1, 3])
def test_gradient_to_margin_against_finite_differences(outputs):
    net = PolyReLUNet(6, 15, 3.0, outputs, bias=True, centre=draw(6), normalise_input=True, seed=2, dtype=torch.float64)
    X = draw(1500, 6, seed=3)  # two blocks
    f = net(X).detach()
    y = f.sign() if outputs == 1 else f.argmax(dim=1)

    def margin(Z):
        f = net(Z).detach()
        if outputs == 1:
            return y * f
        return f.gather(1, y[:, None])[:, 0] - f.scatter(1, y[:, None], -math.inf).amax(dim=1)

    h = 1e-6
    slopes = torch.stack([(margin(X + h * e) - margin(X - h * e)) / (2 * h) for e in torch.eye(6).double()], dim=1)
    good = margin(X) > 0.05
    expected = slopes.norm(dim=1) / margin(X)
    torch.testing.assert_close(gradient_to_margin(net, X, y)[good], expected[good], rtol=1e-4, atol=1e-6)
    wrong = -y if outputs == 1 else (y + 1) % 3
    assert gradient_to_margin(net, X, wrong).isinf().all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: universal(MU, torch.ones(10)), "two classes"),
        (lambda: universal(MU, Y[:9]), "labels"),
        (lambda: universal(MU[0], Y[:1]), "centres"),
        (lambda: gradient_to_margin(AverageClassifier(MU, Y), MU, Y[:3]), "X, y"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(InputError, match=words):
        call()


@pytest.mark.parametrize("net", [lambda X: None, lambda X: X[:0], lambda X: X[:, :2], lambda X: 1 / 0])
def test_a_net_that_does_not_answer_for_every_row_and_class_is_refused(net):
    centres, labels = torch.eye(3), torch.tensor([0, 1, 2])
    with pytest.raises(InputError):
        universal(centres, labels, net)
    with pytest.raises(InputError):
        gradient_to_margin(net, centres, labels)
