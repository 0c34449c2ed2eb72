import torch
from torch import nn

from polyrelu.bias.layer_norms import filter_norm


def test_convolution_bound_against_its_matrix():
    weight = torch.randn(3, 2, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    images = torch.eye(2 * 25, dtype=torch.float64).reshape(50, 2, 5, 5)
    matrix = nn.functional.conv2d(images, weight, padding="same").flatten(1)
    true = float(torch.linalg.matrix_norm(matrix, 2))
    assert true <= filter_norm(weight, 5) <= 1.3 * true
