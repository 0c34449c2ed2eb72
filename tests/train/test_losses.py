"""Losses in log domain against plain formulas and 50-digit arithmetic."""

import mpmath
import pytest
import torch
from torch.nn import functional

from polyrelu.errors import InputError
from polyrelu.train.losses import LOSSES, check_loss, loss_slopes

F64 = torch.float64


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("outputs", [1, 4])
def test_pull_is_minus_the_gradient(loss, outputs):
    generator = torch.Generator().manual_seed(0)
    f = torch.randn(20, outputs, generator=generator, dtype=F64, requires_grad=True)
    y = torch.arange(20) % 4 if outputs > 1 else 1.0 - 2 * (torch.arange(20, dtype=F64) % 2)
    if outputs == 1:
        plain = {
            "exp": lambda: torch.exp(-y * f[:, 0]),
            "logistic": lambda: functional.softplus(-y * f[:, 0]),
            "cross_entropy": lambda: functional.softplus(-y * f[:, 0]),
            "squared": lambda: (y - f[:, 0]).square() / 2,
        }[loss]()
    else:
        others = torch.exp(f - f.gather(1, y[:, None])).sum(1) - 1
        plain = {
            "exp": lambda: others,
            "logistic": lambda: functional.cross_entropy(f, y, reduction="none"),
            "cross_entropy": lambda: functional.cross_entropy(f, y, reduction="none"),
            "squared": lambda: (functional.one_hot(y, 4) - f).square().sum(1) / 2,
        }[loss]()
    (gradient,) = torch.autograd.grad(plain.sum(), f)
    log_loss, log_size, direction = loss_slopes(loss, f.detach(), y)
    assert torch.allclose(log_loss.exp(), plain.detach(), rtol=1e-10)
    assert torch.allclose(direction * log_size.exp()[:, None], -gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("margin", [-50.0, 0.0, 14.9, 15.1, 40.0, 2030.0])
@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_log_of_a_logistic_loss_no_float_holds(margin, dtype):
    mpmath.mp.dps = 1000
    exact = float(mpmath.log(mpmath.log1p(mpmath.exp(-mpmath.mpf(margin)))))
    found = loss_slopes("logistic", torch.tensor([[margin]], dtype=dtype), torch.ones(1, dtype=dtype))
    assert float(found.log_loss) == pytest.approx(exact, rel=2e-6 if dtype == torch.float32 else 1e-9)
    size = float(-mpmath.log(1 + mpmath.exp(mpmath.mpf(margin))))
    assert float(found.log_size) == pytest.approx(size, rel=1e-6, abs=1e-12)


def test_unknown_loss_lists_the_known_ones():
    with pytest.raises(InputError, match="loss=hinge: expected one of exp, logistic, cross_entropy, squared"):
        check_loss("hinge")
