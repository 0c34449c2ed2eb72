"""Halves of the classes, images moved and embedded, and a ResNet that learns what is plain."""

import dataclasses

import pytest
import torch

from polyrelu.claims.lpll25 import image_nets
from polyrelu.claims.lpll25.sizes import ImageTask
from polyrelu.data import Dataset
from polyrelu.nets import MLP, ResNet

TASK = ImageTask("digits", "halves", 2, 20, (0.1, 0.4), 0.4)


def test_halves_and_pictures():
    train, test = image_nets.pictures(TASK, 0)
    assert (len(train), len(test)) == (1300, 20)
    assert not {tuple(row.tolist()) for row in train.rows()} & {tuple(row.tolist()) for row in test.rows()}
    coarse, signs = image_nets.halved(test, dataclasses.replace(TASK, halves="parity"))
    assert signs.tolist()[:4] == [1, -1, 1, -1] and torch.equal(coarse.y, signs[test.y])
    assert image_nets.halved(train, TASK)[1].tolist() == [1] * 5 + [-1] * 5


def test_the_embedding_is_what_the_last_layer_sees():
    X = torch.rand(5, 64)
    mlp, resnet = MLP(64, 7, 3, 10, bias=True), ResNet(1, 8, 10, blocks=(1,), width=3).eval()
    torch.testing.assert_close(image_nets.embedding(mlp, X) @ mlp.weights[-1].T + mlp.biases[-1], mlp(X))
    torch.testing.assert_close(resnet.last(image_nets.embedding(resnet, X)), resnet(X))


def test_moved_images_are_shifted_and_mirrored():
    images = torch.zeros(200, 1, 32, 32)
    images[:, 0, 16, 10] = 1
    rows, columns = image_nets.moved(images, torch.Generator().manual_seed(0))[:, 0].nonzero()[:, 1:].T
    assert len(rows) == 200 and set(rows.tolist()) == set(range(12, 21))
    assert set(columns.tolist()) == {*range(6, 15), *range(31 - 14, 31 - 5)}


@pytest.mark.parametrize("binary", [True, False])
def test_a_resnet_learns_what_is_plain(binary):
    kind = torch.arange(256) % 2
    X = 0.3 * torch.rand(256, 64, generator=torch.Generator().manual_seed(0)) + 0.5 * kind[:, None]
    data = Dataset(X, 1.0 - 2 * kind if binary else kind)
    start = ResNet(1, 8, 1 if binary else 2, blocks=(1,), width=4)
    net = image_nets.train(start, data, 3, shift=True).eval()
    logits = net(X)
    assert net is start and torch.equal(logits < 0 if binary else logits.argmax(dim=1) == 1, kind == 1)
