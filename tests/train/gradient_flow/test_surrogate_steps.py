"""The surrogate and its reduced basis: masses and means are exact, coordinates go down and up without loss."""

import pytest
import torch

from polyrelu import OrthonormalMixture
from polyrelu.train.gradient_flow.surrogate_steps import ReducedBasis, stratified, summarise

F64 = torch.float64


def test_masses_and_first_moments_are_exact():
    data = OrthonormalMixture(dim=40, positive=3, negative=2, alpha=0.2, dtype=F64).sample(3000, seed=0)
    X, y = data.rows(), data.y
    small = summarise(lambda a, b: X[a:b], y, 64)
    assert float(small.weight.sum()) == pytest.approx(1)
    for label in (-1.0, 1.0):
        of_class = small.y == label
        assert float(small.weight[of_class].sum()) == pytest.approx(float((y == label).double().mean()))
        mean = (small.weight[of_class, None] * small.rows[of_class]).sum(0)
        assert torch.allclose(mean, X[y == label].sum(0) / len(y), atol=1e-12)
    # Well separated clusters are never mixed, so their masses are right too, and the scatter is the noise that is left.
    nearest = (small.rows @ data.centres.T).argmax(1)
    for k in range(5):
        assert float(small.weight[nearest == k].sum()) == pytest.approx(float((data.cluster == k).double().mean()))
    assert float(small.noise.median()) == pytest.approx(0.2 / 40**0.5, rel=0.1)
    assert torch.allclose(small.basis.T @ small.basis, torch.eye(small.basis.shape[1], dtype=F64), atol=1e-10)
    assert torch.allclose(small.rows @ small.basis @ small.basis.T, small.rows, atol=1e-10)


def test_every_class_is_represented_and_the_choice_is_repeatable():
    y = torch.zeros(5000, dtype=torch.long)
    y[17], y[4000] = 1, 2
    chosen = stratified(y, 50, torch.Generator().manual_seed(0))
    assert {17, 4000} <= set(chosen.tolist())
    assert torch.equal(chosen, stratified(y, 50, torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_reduced_coordinates_restore_their_vectors(dtype):
    generator = torch.Generator().manual_seed(1)
    basis = torch.linalg.qr(torch.randn(50, 12, generator=generator, dtype=F64))[0].to(dtype)
    inside = torch.randn(7, 12, generator=generator, dtype=F64).to(dtype) @ basis.T
    vectors = [torch.randn(7, 50, generator=generator, dtype=F64).to(dtype), inside, torch.zeros(7, 50, dtype=dtype)]
    vectors[1][0] += 1e-4 * vectors[0][0]  # nearly inside the span
    reduced = ReducedBasis(basis, vectors)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for vector, coordinates in zip(vectors, reduced.coordinates, strict=True):
        assert torch.allclose(reduced.up(coordinates), vector, atol=tolerance)
        assert torch.allclose(coordinates.norm(dim=1), vector.norm(dim=1), rtol=10 * tolerance, atol=tolerance)
    probes = torch.randn(3, 50, generator=generator, dtype=F64).to(dtype)
    assert torch.allclose(reduced.products(reduced.coordinates[0], probes), vectors[0] @ probes.T, atol=10 * tolerance)
