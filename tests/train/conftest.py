"""Independent solvers to compare the flow with: raw weights, float64, nothing shared with the package's engine."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from polyrelu.data import Dataset, OrthonormalMixture


def raw_logits(W, V, X, p):
    """f by the formula of the paper, (n, C): sum_j v_j relu(<x, w_j>)^p / |w_j|^(p-1)."""
    norms = np.linalg.norm(W, axis=1)
    hidden = np.maximum(X @ W.T, 0) ** p / norms ** (p - 1)
    return hidden @ V


def raw_gradient(W, V, b, X, y, p, loss):
    """-dL/dW, -dL/dV, -dL/db of the mean loss, each written out by hand."""
    norms = np.linalg.norm(W, axis=1)
    z = np.maximum(X @ W.T, 0)
    hidden = z**p / norms ** (p - 1)
    f = hidden @ V + b
    if f.shape[1] == 1:
        target = y[:, None]
        pull = {
            "exp": lambda: target * np.exp(-target * f),
            "logistic": lambda: target / (1 + np.exp(target * f)),
            "squared": lambda: target - f,
        }[loss]()
    else:
        target = np.eye(f.shape[1])[y.astype(int)]
        soft = np.exp(f - f.max(1, keepdims=True))
        soft /= soft.sum(1, keepdims=True)
        pull = {"cross_entropy": lambda: target - soft, "squared": lambda: target - f}[loss]()
    g = pull / len(X)
    low = np.where(z > 0, p * z ** (p - 1), 0) / norms ** (p - 1)
    back = g @ V.T
    dW = (back * low).T @ X - ((p - 1) * (back * hidden).sum(0) / norms**2)[:, None] * W
    return dW, hidden.T @ g, g.sum(0)


@pytest.fixture
def raw_flow():
    """Gradient flow on raw weights: (net, data, loss, time) -> logits on the data and the weights.

    By scipy's DOP853; for p = 1, where the field jumps at gates and high order gains nothing, by 20000 Euler steps.
    """

    def solve(net, data, loss, time, biased=False):
        W, V = net.weight.detach().double().numpy(), net.output.detach().double().numpy().T
        X, y, p = net.preprocess(data.rows().double()).numpy(), data.y.double().numpy(), net.p
        h, dim, outputs = *W.shape, V.shape[1]

        def unpack(theta):
            W, V = theta[: h * dim], theta[h * dim : -outputs]
            return W.reshape(h, dim), V.reshape(h, outputs), theta[-outputs:]

        def slope(_, theta):
            dW, dV, db = raw_gradient(*unpack(theta), X, y, p, loss)
            return np.concatenate([dW.ravel(), dV.ravel(), db if biased else 0 * db])

        start = np.concatenate([W.ravel(), V.ravel(), np.zeros(outputs)])
        if p == 1:
            end = start
            for _ in range(20_000):
                end = end + time / 20_000 * slope(0, end)
        else:
            solution = solve_ivp(slope, (0, time), start, method="DOP853", rtol=1e-9, atol=1e-14)
            assert solution.success
            end = solution.y[:, -1]
        W, V, b = unpack(end)
        return raw_logits(W, V, X, p) + b, W, V

    return solve


@pytest.fixture
def small():
    """A quick mixture in float64 and its data: 2 + 2 clusters in 12 dimensions."""
    mix = OrthonormalMixture(dim=12, positive=2, negative=2, alpha=0.3, dtype=torch.float64)
    return mix.sample(60, seed=1)


@pytest.fixture
def large():
    """Enough rows for two-level steps: 6 + 4 clusters, D = 60, n = 3000, float64."""
    mix = OrthonormalMixture(dim=60, positive=6, negative=4, alpha=0.1, dtype=torch.float64)
    return mix.sample(3000, seed=2)


@pytest.fixture
def three_classes():
    """Three noisy classes in 10 dimensions, integer labels."""
    generator = torch.Generator().manual_seed(3)
    y = torch.arange(90) % 3
    X = 0.3 * torch.randn(90, 10, generator=generator, dtype=torch.float64)
    X[torch.arange(90), y] += 1
    return Dataset(X, y, name="three classes")
