"""The alignment field against loops, autograd and steps of descent."""

import pytest
import torch
from torch.nn.functional import normalize

from polyrelu import Dataset, InputError, OrthonormalMixture, PolyReLUNet
from polyrelu.bias import alignment_field, alignment_speed

F64 = torch.float64


def mixture(dim=20, n=200, positive=6, negative=4, alpha=0.1, seed=0, rotate=None):
    return OrthonormalMixture(dim, positive, negative, alpha, rotate=rotate, dtype=F64).sample(n, seed=seed)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 4.2])
def test_the_field_is_the_printed_sum(p, rough):
    data, W = rough(), torch.randn(5, 8, dtype=F64, generator=torch.Generator().manual_seed(0))
    field = alignment_field(data, W, p)
    for w, found in zip(W, field, strict=True):
        wanted = torch.zeros(8, dtype=F64)
        for x, y in zip(data.X, data.y, strict=True):
            cosine = x @ w / x.norm() / w.norm()
            if cosine > 0:
                wanted += y * p * cosine ** (p - 1) * x
        assert torch.allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert torch.allclose(alignment_field(data, 1e-200 * W, p), field, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_the_speed_is_that_of_the_true_gradient(p, normalise, classes, rough):
    # A net of size 1e-12 has f = 0 to twelve digits: its loss gradient is the alignment field times |v|/|w|.
    data, outputs = rough(classes), 1 if classes == 2 else 3
    settings = {"centre": torch.full((8,), 0.3), "normalise_input": normalise, "scale": 1e-6, "dtype": F64}
    net = PolyReLUNet(8, 30, p, outputs, **settings)
    f = net(data.X)
    loss = (-data.y * f).exp().sum() if classes == 2 else torch.nn.functional.cross_entropy(f, data.y, reduction="sum")
    loss.backward()
    W, v = net.weight.detach(), net.output.detach().T
    r, u = W.norm(dim=1, keepdim=True), normalize(W)
    pull = -net.weight.grad
    turn = (pull - (pull * u).sum(1, keepdim=True) * u) / r
    speed = alignment_speed(net, data) * v.norm(dim=1, keepdim=True) / r
    assert classes > 2 or {-1.0, 1.0} == set(v[:, 0].sign().tolist())
    assert torch.allclose(speed, turn, rtol=1e-7, atol=1e-7 * float(turn.abs().max()))
    assert float(torch.cosine_similarity(speed, turn).min()) >= 0.9999


def test_a_step_of_descent_turns_neurons_along_the_printed_field():
    # B27: D = 20, start 1e-8, finite difference of directions; without sign(v) the negative ones go the wrong way.
    data = mixture()
    for p in (1.0, 3.0):
        net = PolyReLUNet(20, 40, p, init="balanced", scale=1e-8, dtype=F64)
        before = net.directions()
        (-data.y * net(data.X)).exp().sum().backward()
        with torch.no_grad():
            net.weight -= 1e-6 * net.weight.grad
        moved = (net.directions() - before) / 1e-6
        printed = alignment_field(data, before, p)
        across = printed - (printed * before).sum(1, keepdim=True) * before
        cosines = torch.cosine_similarity(moved, across)
        sign = net.output.detach()[0].sign()
        assert float((sign * cosines).min()) >= 0.999
        assert float(cosines[sign < 0].max()) <= -0.999
        assert float(torch.cosine_similarity(moved, alignment_speed(net, data)).min()) >= 0.9999


def test_classes_pull_with_their_share(rough):
    # 1[y=1] - 1/3 = (y' + 1/3)/2 with y' = +1 for class 1 and -1 for the others, so twice the field of class 1 is
    # that of y' plus a third of that of all rows, counted +1 (the last one is the origin, which pulls nowhere).
    data, W = rough(3), torch.randn(4, 8, dtype=F64, generator=torch.Generator().manual_seed(1))
    fields = [alignment_field(data, W, 2, target=c) for c in range(3)]
    assert torch.allclose(sum(fields), torch.zeros(4, 8, dtype=F64), atol=1e-12)
    one = Dataset(data.X, torch.where(data.y == 1, 1.0, -1.0).to(F64))
    signs = torch.ones(61, dtype=F64)
    signs[-1] = -1
    every = Dataset(torch.cat([data.X, torch.zeros(1, 8, dtype=F64)]), signs)
    assert torch.allclose(2 * fields[1], alignment_field(one, W, 2) + alignment_field(every, W, 2) / 3, atol=1e-10)


def test_the_field_turns_with_the_data(rough):
    data, W = rough(), torch.randn(4, 8, dtype=F64, generator=torch.Generator().manual_seed(1))
    Q = torch.linalg.qr(torch.randn(8, 8, dtype=F64, generator=torch.Generator().manual_seed(2)))[0]
    turned = alignment_field(Dataset(data.X @ Q, data.y), W @ Q, 2.5)
    assert torch.allclose(turned, alignment_field(data, W, 2.5) @ Q, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda rough: alignment_field(rough(), torch.ones(3, 7), 1), "one row per neuron"),
        (lambda rough: alignment_field(rough(), torch.ones(3, 8), 0.5), "p=0.5"),
        (lambda rough: alignment_field(rough(), torch.ones(3, 8), 1, target=0), "None for labels"),
        (lambda rough: alignment_field(rough(3), torch.ones(3, 8), 1), "a class 0..2"),
        (lambda rough: alignment_speed(PolyReLUNet(8, 3, 1, 3), rough()), "net.outputs=3"),
    ],
)
def test_bad_input(call, words, rough):
    with pytest.raises(InputError, match=words):
        call(rough)
