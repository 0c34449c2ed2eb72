import copy
import math

import pytest
import torch
from torch.nn import functional

from polyrelu.bias import NO_OWN_COEFFICIENT, ONE_SUBCLASS, OUTSIDE_SPAN, decompose
from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import MLP, AverageClassifier, CentreClassifier, FixedOutputNet, GroupedNet, PolyReLUNet

LABELS = torch.tensor([1.0] * 6 + [-1.0] * 4).double()


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def orthonormal(scale=1.0):
    return scale * torch.linalg.qr(draw(30, 10)).Q.T


def correlated():
    # norms .5 .. 2 and angles far from right, well conditioned
    return torch.linspace(0.5, 2, 10).double()[:, None] * (orthonormal() + 0.3 * orthonormal().sum(0))


CENTRES = {"orthonormal": orthonormal(), "length sqrt(d)": orthonormal(30**0.5), "correlated": correlated()}


@pytest.mark.parametrize("centres", CENTRES.values(), ids=CENTRES)
def test_averages_score_0_and_single_centres_score_1(centres):
    average = decompose(AverageClassifier(centres, LABELS), centres, LABELS).learned()
    assert average.score == pytest.approx(0, abs=1e-12) and average.averaging_ratio == pytest.approx(1, abs=1e-12)
    assert average.verdict == "class averages" and average.explained == pytest.approx(1)
    single = decompose(CentreClassifier(centres, LABELS, 3), centres, LABELS).learned()
    assert single.score == pytest.approx(1, abs=1e-12) and single.averaging_ratio == pytest.approx(0, abs=1e-12)
    assert single.effective == pytest.approx(1) and single.verdict == "single centres"
    assert single.other_ratio == pytest.approx(0, abs=1e-12) and single.low == single.high == single.score


def test_coefficients_and_residual_are_exact_for_correlated_centres():
    centres, true = correlated(), draw(7, 10, seed=1)
    extra = draw(7, 30, seed=2)
    extra -= extra @ torch.linalg.pinv(centres) @ centres  # outside their span
    W = true @ centres + extra
    found = decompose(W, centres)
    m, size = centres.square().sum(1).mean().sqrt(), W.norm(dim=1)
    torch.testing.assert_close(found.coefficients * size[:, None] / m, true)
    torch.testing.assert_close(found.residual, extra.norm(dim=1) / size)
    torch.testing.assert_close(found.log_size.exp(), size)
    with pytest.raises(InputError, match="own class"):
        found.learned()


def test_coefficients_are_cosines_for_orthogonal_centres_of_one_length():
    W, centres = draw(5, 30, seed=3), orthonormal(7.0)
    cosines = functional.cosine_similarity(W[:, None], centres[None], dim=2)
    torch.testing.assert_close(decompose(W, centres).coefficients, cosines)


@pytest.mark.parametrize("used", range(1, 7))
def test_score_counts_the_centres_in_use(used):
    W = orthonormal()[:used].sum(0, keepdim=True)
    found = decompose(W, orthonormal(), LABELS, owners=torch.ones(1))
    assert found.learned().score == pytest.approx((6 - used) / 5) and found.learned().effective == pytest.approx(used)


def test_neurons_count_by_contribution_and_other_class_by_hand():
    # a positive average of contribution 3 and a negative single centre of contribution 1 that leans on two others
    e = torch.eye(10, dtype=torch.float64)
    net = PolyReLUNet(10, 2, 1.0, init="zeros", dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.stack([3 * e[:6].sum(0) / 6**0.5, e[6] - 0.5 * e[0]]))
        net.output.copy_(torch.tensor([[1.0, -1 / 1.25**0.5]]))
    found = decompose(net, e, LABELS)
    torch.testing.assert_close(found.share, torch.tensor([0.75, 0.25]).double())
    learned = found.learned()
    assert learned.score == pytest.approx(0.25) and learned.averaging_ratio == pytest.approx(0.75)
    assert learned.spread == pytest.approx(math.sqrt(0.75 * 0.25))
    own = 0.75 / 6**0.5 + 0.25 * (1 / 1.25**0.5) / 4  # mean own coefficient of each, weighted
    assert learned.other_largest == pytest.approx(0.25 * 0.5 / 1.25**0.5 / own)
    assert learned.other_ratio == pytest.approx(0.25 * 0.5 / 1.25**0.5 / 6 / own)


def test_rotation_scale_and_neuron_order_change_nothing():
    net = PolyReLUNet(30, 20, 3.0, seed=4, dtype=torch.float64)
    first = decompose(net, correlated(), LABELS)
    turn, order = torch.linalg.qr(draw(30, 30, seed=5)).Q, torch.randperm(20)
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.weight.copy_((1e5 * net.weight @ turn)[order])
        other.output.copy_(1e-3 * net.output[:, order])
    second = decompose(other, 40 * correlated() @ turn, LABELS)
    torch.testing.assert_close(second.coefficients, first.coefficients[order])
    assert second.learned().score == pytest.approx(first.learned().score, abs=1e-12)
    assert second.learned().verdict == first.learned().verdict == OUTSIDE_SPAN


def test_centres_are_seen_as_the_net_sees_them_even_when_they_become_dependent():
    # minus their own mean the centres sum to 0; of all coefficients those with none on the other class are taken
    shift = orthonormal().mean(0)
    for p, W in ((1.0, torch.stack([orthonormal()[:6].sum(0) - 6 * shift] * 2)), (3.0, orthonormal()[:2] - shift)):
        net = PolyReLUNet(30, 2, p, centre=shift, init="zeros", dtype=torch.float64)
        with torch.no_grad():
            net.weight.copy_(W)
            net.output.fill_(1.0)
        found = decompose(net, orthonormal(), LABELS)
        assert found.rank == 9 and found.learned().score == pytest.approx(0.0 if p == 1 else 1.0, abs=1e-12)
        assert found.learned().other_largest == pytest.approx(0, abs=1e-12)
        expected = torch.ones(2, 6).double() if p == 1 else torch.eye(6).double()[:2]
        own = found.coefficients[:, :6]
        torch.testing.assert_close(own / own[:, :1].where(own[:, :1] > 1e-9, own[:, 1:2]), expected)


@pytest.mark.parametrize("seed", range(5))
def test_centres_that_nearly_coincide_share_a_coefficient(seed):
    # own coefficients of the average are then 1, 1, 1, 1, 1, 1/2, 1/2: PR = 36/5.5, and the other class gets none
    centres = torch.cat([orthonormal()[5:6] + 1e-4 * draw(1, 30, seed=seed), orthonormal()])
    labels = torch.cat([torch.ones(1), LABELS])
    net = AverageClassifier(orthonormal(), LABELS)
    found = decompose(net, centres, labels)
    assert found.rank == 10
    assert found.decoupling_scores().tolist() == pytest.approx([(7 - 36 / 5.5) / 6, 0], abs=1e-3)
    assert found.learned().other_largest < 1e-2


def test_more_centres_than_dimensions():
    centres = torch.cat([torch.eye(3), -torch.eye(3)]).double()
    found = decompose(centres[:1], centres, torch.tensor([1, 1, 1, -1, -1, -1]), owners=torch.ones(1))
    assert found.rank == 3 and found.learned().score == pytest.approx(1) and found.learned().other_ratio < 1e-12


def test_sizes_below_floating_point():
    net = PolyReLUNet(30, 4, 3.0, init="balanced", scale=1e-300, seed=1, dtype=torch.float32)
    found = decompose(net, orthonormal(), LABELS)
    assert found.log_size.max() < -680 and found.share.sum() == pytest.approx(1)
    assert found.coefficients.isfinite().all() and found.residual.isfinite().all()


def test_start_is_subtracted():
    before, moved = 1e3 * draw(3, 30, seed=6), orthonormal()[[0, 2, 7]]
    found = decompose(before + moved, orthonormal(), start=before)
    torch.testing.assert_close(found.coefficients, torch.eye(10).double()[[0, 2, 7]], atol=1e-9, rtol=0)
    torch.testing.assert_close(found.log_size.exp(), torch.ones(3).double())


def trained(net, data, loss, steps=25, lr=0.05):
    start, step = copy.deepcopy(net), torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(steps):
        step.zero_grad()
        loss(net(data.rows())).backward()
        step.step()
    return start


def test_gradient_descent_stays_in_the_span_of_the_samples():
    # C15; the coefficients c_i of w - w(0) = sum_i c_i x_i give the papers' lambda_k as sums over the cluster
    mix = OrthonormalMixture(40, 3, 2, 1.0, scale="sqrt_dim", dtype=torch.float64)
    data = mix.sample(30, seed=0)
    net = FixedOutputNet(40, 4, scale=1e-3, dtype=torch.float64)
    start = trained(net, data, lambda f: functional.softplus(-data.y * f).mean())
    found = decompose(net, mix.centres, mix.labels, start=start, X=data)
    assert found.outside.max() <= 1e-10
    moved = found.log_size.exp()[:, None] * (found.samples @ data.rows())
    torch.testing.assert_close(moved, (net.weight - start.weight).detach())
    with torch.no_grad():
        net.weight[0] += 1e-3 * draw(40, seed=8)
    assert 1e-6 < decompose(net, mix.centres, start=start, X=data.rows()).outside[0] < 0.1
    many = decompose(net, mix.centres, X=mix.sample(5000, seed=1))  # they span everything, in two blocks
    assert many.outside.max() <= 1e-10 and many.samples is None


def test_weight_normalised_nets_keep_a_multiple_of_their_start():
    mix = OrthonormalMixture(40, 3, 2, 0.5, dtype=torch.float64)
    data = mix.sample(30, seed=0)
    net = PolyReLUNet(40, 6, 3.0, scale=0.3, dtype=torch.float64)
    start = trained(net, data, lambda f: functional.softplus(-data.y * f).mean(), lr=0.5)
    assert decompose(net, mix.centres, start=start, X=data).outside.max() <= 1e-10
    assert decompose(net, mix.centres, X=data).outside.max() > 1e-3


def test_grouped_net_belongs_to_the_class_of_its_centre():
    net = GroupedNet(30, 10, 2, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(orthonormal()[:, None].expand(10, 2, 30))
    assert decompose(net, orthonormal(), LABELS).learned().score == pytest.approx(1)
    assert decompose(net, orthonormal(), torch.arange(10)).learned().verdict == ONE_SUBCLASS
    by_class = GroupedNet(30, 2, 1, dtype=torch.float64)
    classes = (LABELS < 0).long()
    with torch.no_grad():
        by_class.weight.copy_(torch.stack([orthonormal()[classes == c].sum(0) for c in (0, 1)])[:, None])
    assert decompose(by_class, orthonormal(), classes).learned().score == pytest.approx(0, abs=1e-12)


def test_several_logits_vote_for_the_largest():
    net = PolyReLUNet(30, 2, 1.0, 2, init="zeros", dtype=torch.float64)
    classes = (LABELS < 0).long()
    with torch.no_grad():
        net.weight.copy_(torch.stack([orthonormal()[:6].sum(0), orthonormal()[6]]))
        net.output.copy_(torch.tensor([[2.0, -1.0], [1.0, -0.5]]))
    found = decompose(net, orthonormal(), classes)
    assert torch.equal(found.own, torch.stack([classes == 0, classes == 1]))
    torch.testing.assert_close(found.decoupling_scores(), torch.tensor([0.0, 1.0]).double())


def test_weights_make_the_weighted_average_score_0():
    sizes = torch.arange(1.0, 11).double()
    W = (sizes[:6, None] * orthonormal()[:6]).sum(0, keepdim=True)
    owners = torch.ones(1)
    assert decompose(W, orthonormal(), LABELS, owners=owners, weights=sizes).learned().score == pytest.approx(
        0, abs=1e-12
    )
    assert decompose(W, orthonormal(), LABELS, owners=owners).learned().score > 0.1


def test_a_net_without_own_coefficients_says_so():
    found = decompose(-orthonormal()[:2], orthonormal(), LABELS, owners=torch.ones(2)).learned()
    assert found.verdict == NO_OWN_COEFFICIENT and math.isnan(found.score)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: decompose(draw(3, 30), draw(10, 29)), "centres"),
        (lambda: decompose(draw(30), orthonormal()), r"W\.shape"),
        (lambda: decompose(torch.full((2, 30), torch.nan), orthonormal()), "finite"),
        (lambda: decompose(MLP(30, 5, 3), orthonormal()), "one hidden layer"),
        (lambda: decompose(torch.zeros(2, 30), orthonormal()), "not 0"),
        (lambda: decompose(draw(3, 30), torch.zeros(2, 30)), "not all 0"),
        (lambda: decompose(draw(3, 30), orthonormal(), start=draw(4, 30)), "start"),
        (lambda: decompose(draw(3, 30), orthonormal(), LABELS[:9], owners=torch.ones(3)), "labels"),
        (lambda: decompose(draw(3, 30), orthonormal(), LABELS, owners=torch.ones(4)), "owners"),
        (lambda: decompose(draw(3, 30), orthonormal(), LABELS, owners=torch.full((3,), 5)), "vote"),
        (lambda: decompose(draw(3, 30), orthonormal(), weights=torch.zeros(10)), "weights"),
        (lambda: decompose(draw(3, 30), orthonormal(), X=draw(5, 29)), r"X\.shape"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(InputError, match=words):
        call()
