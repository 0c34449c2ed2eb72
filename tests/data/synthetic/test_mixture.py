import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError

SMALL = OrthonormalMixture(20, 6, 4, 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rotate", [None, 0, 7, 2**70])
def test_directions_are_orthonormal(rotate, dtype):
    mixture = OrthonormalMixture(50, 6, 4, 0.1, rotate=rotate, dtype=dtype)
    assert mixture.centres.dtype == dtype and mixture.centres.shape == (10, 50)
    assert torch.allclose(mixture.centres @ mixture.centres.T, torch.eye(10, dtype=dtype), atol=1e-6)


def test_standard_centres_labels_and_class_averages():
    mixture = OrthonormalMixture(12, 3, 2, 0.1)
    assert torch.equal(mixture.centres, torch.eye(5, 12))
    assert mixture.labels.tolist() == [1, 1, 1, -1, -1] and mixture.clusters == 5
    plus, minus = mixture.class_averages
    assert torch.allclose(plus[:3], torch.full((3,), 1 / math.sqrt(3))) and plus[3:].abs().max() == 0
    assert torch.allclose(minus[3:5], torch.full((2,), 1 / math.sqrt(2))) and minus[5:].abs().max() == 0


@pytest.mark.parametrize("rotate", [None, 3])
def test_class_averages_are_unit_and_orthogonal(rotate):
    averages = OrthonormalMixture(30, 7, 5, 0.1, rotate=rotate, scale=4.0).class_averages
    assert torch.allclose(averages @ averages.T, torch.eye(2), atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "radius", "std"),
    [
        ({}, 1, 0.3 / math.sqrt(400)),
        ({"scale": 2.5}, 2.5, 0.3 / math.sqrt(400)),
        ({"scale": "sqrt_dim"}, 20, 0.3),
        ({"noise": 0.7}, 1, 0.7),
        ({"scale": "sqrt_dim", "noise": 0.7}, 20, 0.7),
    ],
)
def test_lengths_and_noise_have_the_stated_moments(settings, radius, std):
    mixture = OrthonormalMixture(400, 2, 3, 0.3, rotate=1, **settings)
    data = mixture.sample(1500, seed=4)
    assert torch.allclose(data.centres.norm(dim=1), torch.full((5,), float(radius)))
    g = (data.rows() - data.centres[data.cluster]).double() / std
    # N = 600000 standard normals: mean within 5/sqrt(N), variance within 5 sqrt(2/N), fourth moment 3 within
    # 5 sqrt(96/N).
    N = g.numel()
    assert abs(g.mean()) < 5 / math.sqrt(N)
    assert abs((g**2).mean() - 1) < 5 * math.sqrt(2 / N)
    assert abs((g**4).mean() - 3) < 5 * math.sqrt(96 / N)
    # Rows of different blocks and neighbours are uncorrelated: a mean of 400 products has deviation 1/20.
    assert abs((g[0] * g[1]).mean()) < 5 / 20 and abs((g[0] * g[1024]).mean()) < 5 / 20


@pytest.mark.parametrize("n", [10, 11, 19, 1000, 1003, 9])
def test_balanced_counts_differ_by_at_most_one(n):
    counts = torch.bincount(OrthonormalMixture(20, 2, 8, 0.1).sample(n, seed=3).cluster, minlength=10)
    assert counts.sum() == n and set(counts.tolist()) <= {n // 10, -(-n // 10)}


def test_balanced_rows_are_shuffled_and_the_odd_ones_random():
    clusters = [SMALL.sample(1003, seed=s).cluster for s in range(20)]
    assert all(not torch.equal(c, c.sort().values) for c in clusters)
    most = {tuple(torch.bincount(c).argsort(descending=True, stable=True)[:3].tolist()) for c in clusters}
    assert len(most) > 10


def test_unbalanced_draw_is_uniform():
    n = 20000
    counts = torch.bincount(OrthonormalMixture(10, 6, 4, 0.1).sample(n, seed=0, balanced=False, lazy=True).cluster)
    assert ((counts / n - 0.1).abs() < 5 * math.sqrt(0.1 * 0.9 / n)).all() and len(set(counts.tolist())) > 2


def test_labels_follow_clusters():
    data = SMALL.sample(200, seed=1)
    assert torch.equal(data.y > 0, data.cluster < 6) and data.binary


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("balanced", [True, False])
def test_lazy_is_bitwise_eager_for_any_slice(dtype, balanced):
    mixture = OrthonormalMixture(13, 3, 2, 0.4, rotate=2, dtype=dtype)
    eager = mixture.sample(3333, seed=9, balanced=balanced)
    lazy = mixture.sample(3333, seed=9, balanced=balanced, lazy=True)
    assert not isinstance(lazy.X, torch.Tensor) and torch.equal(lazy.y, eager.y)
    for start, stop in [(0, 3333), (0, 1), (1023, 1025), (1024, 2048), (1000, 3333), (3332, 3333), (7, 7), (500, 2700)]:
        assert torch.equal(lazy.rows(start, stop), eager.rows(start, stop))
    assert all(torch.equal(block, eager.rows(s, s + len(block))) for s, block in lazy.blocks(77))
    assert torch.equal(lazy.class_means(), eager.class_means())


def test_what_is_read_can_be_changed_without_harm():
    lazy = SMALL.sample(100, seed=0, lazy=True)
    before = lazy.rows(0, 10).clone()
    lazy.rows(0, 10).zero_()
    assert torch.equal(lazy.rows(0, 10), before)


def test_a_million_lazy_rows_cost_no_more_than_their_labels():
    data = OrthonormalMixture(2000, 6, 4, 0.1).sample(10**6, seed=0, lazy=True)
    assert data.rows(10**6 - 3, 10**6).shape == (3, 2000)


def test_rotation_turns_the_centres_and_nothing_else():
    turned = OrthonormalMixture(20, 6, 4, 0.1, rotate=5, dtype=torch.float64)
    plain = OrthonormalMixture(20, 6, 4, 0.1, dtype=torch.float64)
    a, b = turned.sample(100, seed=3), plain.sample(100, seed=3)
    assert torch.equal(a.cluster, b.cluster)
    noise = [d.rows() - d.centres[d.cluster] for d in (a, b)]
    assert torch.allclose(noise[0], noise[1], atol=1e-15)
    # Centres on the basis times R are the rotated ones, R having the turned directions as its first rows.
    assert torch.allclose(b.centres[:, :10] @ turned.directions, a.centres, atol=1e-15)


def test_haar_directions_have_no_preferred_sign():
    # First coordinate of the first direction over 400 frames in R^4: mean 0, variance 1/4.
    first = torch.stack([OrthonormalMixture(4, 1, 1, 0.0, rotate=s).directions[0, 0] for s in range(400)])
    assert abs(first.mean()) < 5 * 0.5 / 20 and abs((first**2).mean() - 0.25) < 5 * 0.25 / 20


def test_sqrt_dim_is_the_unit_set_scaled_up():
    kind = {"dim": 64, "positive": 3, "negative": 3, "alpha": 1.0, "dtype": torch.float64}
    unit, scaled = OrthonormalMixture(**kind), OrthonormalMixture(**kind, scale="sqrt_dim")
    assert torch.allclose(8 * unit.sample(50, seed=2).rows(), scaled.sample(50, seed=2).rows(), atol=1e-12)


def test_no_noise_gives_the_centres():
    data = OrthonormalMixture(8, 2, 2, 0.0).sample(12, seed=0)
    assert torch.equal(data.rows(), data.centres[data.cluster])


def test_same_seed_same_data_other_seed_independent_data():
    a, b, c = (SMALL.sample(500, seed=s) for s in (1, 1, 2))
    assert torch.equal(a.rows(), b.rows()) and torch.equal(a.cluster, b.cluster)
    noise = [(d.rows() - d.centres[d.cluster]) / SMALL.noise_std for d in (a, c)]
    assert abs((noise[0] * noise[1]).mean()) < 5 / math.sqrt(noise[0].numel())
    assert not torch.equal(a.cluster, c.cluster)


def test_long_seeds_and_neighbouring_blocks_do_not_meet():
    # Seeds beyond 32 bits must neither be cut off nor be taken for a (seed, block) pair.
    rows = [
        SMALL.sample(2048, seed=s).rows() - SMALL.centres[SMALL.sample(2048, seed=s).cluster] for s in (5, 5 + 2**32)
    ]
    parts = [r[i : i + 1024] for r in rows for i in (0, 1024)]
    assert all(not torch.allclose(p, q, atol=1e-6) for i, p in enumerate(parts) for q in parts[:i])


def test_the_numbers_behind_a_seed_do_not_change():
    # Recipes are quoted by seed; a change here is a change of every published number.
    data = OrthonormalMixture(4, 1, 1, 1.0, dtype=torch.float64).sample(4, seed=0)
    assert data.cluster.tolist() == FIRST_CLUSTERS
    assert data.rows(0, 1).flatten().tolist() == pytest.approx(FIRST_ROW, abs=1e-12)


def test_the_recipe_is_a_record_and_names_its_samples():
    assert OrthonormalMixture(20, 6, 4, 0.1) == SMALL and len({SMALL, OrthonormalMixture(20, 6, 4, 0.1)}) == 1
    assert SMALL.sample(10, seed=1).name == "mixture:dim=20,clusters=6+4,alpha=0.1,n=10,seed=1"
    other = OrthonormalMixture(20, 6, 4, 1.0, "sqrt_dim", 0.5, 3, torch.float64).sample(100, seed=1, balanced=False)
    assert other.name == (
        "mixture:dim=20,clusters=6+4,alpha=1,scale=sqrt_dim,noise=0.5,rotate=3,dtype=float64,n=100,seed=1,balanced=no"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 0}, r"dim=0: expected a whole number >= 1\."),
        ({"dim": 2.5}, r"dim=2.5: expected a whole number >= 1\."),
        ({"dim": 9}, r"dim=9: expected at least 10, one direction for each of 6\+4 clusters\."),
        ({"positive": 0}, r"positive=0: expected a whole number >= 1\."),
        ({"negative": -1}, r"negative=-1: expected a whole number >= 1\."),
        ({"positive": True}, r"positive=True: expected a whole number"),
        ({"positive": np.uint64(2**64 - 1)}, r"dim=\d+: expected at least 184467440737095516\d\d,"),
        ({"alpha": -0.1}, r"alpha=-0.1: expected a finite number >= 0\."),
        ({"alpha": math.nan}, r"alpha=nan: expected a finite number >= 0\."),
        ({"alpha": "0.1"}, r"alpha='0.1': expected a finite number >= 0\."),
        ({"alpha": 1e38}, r"scale, alpha=.*: expected numbers that fit torch.float32\."),
        ({"scale": 0.0}, r"scale=0.0: expected a finite number > 0\."),
        ({"scale": math.inf}, r"scale=inf: expected a finite number > 0\."),
        ({"scale": "sqrt"}, r"scale='sqrt': expected a finite number > 0 or 'sqrt_dim'\."),
        ({"noise": -1.0}, r"noise=-1.0: expected a finite number >= 0\."),
        ({"rotate": -1}, r"rotate=-1: expected a whole number >= 0\."),
        ({"dtype": torch.float16}, r"dtype=torch.float16: expected torch.float32 or torch.float64\."),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(InputError, match="^" + message):
        OrthonormalMixture(**{"dim": 20, "positive": 6, "negative": 4, "alpha": 0.1, **settings})


@pytest.mark.parametrize(
    ("n", "seed", "message"),
    [
        (0, 0, r"n=0: expected a whole number >= 1\."),
        (10.0, 0, r"n=10.0: expected a whole number >= 1\."),
        (10, -1, r"seed=-1: expected a whole number >= 0\."),
        (10, None, r"seed=None: expected a whole number >= 0\."),
        (
            1,
            0,
            r"n=1: expected both classes among the rows, but seed 0 drew only [+-]1; 10 balanced rows always have both",
        ),
    ],
)
def test_bad_samples_are_named(n, seed, message):
    with pytest.raises(InputError, match="^" + message):
        SMALL.sample(n, seed)


def test_lazy_rows_come_in_order():
    with pytest.raises(InputError, match=r"^step=2: expected consecutive rows \(step 1\)\.$"):
        SMALL.sample(100, seed=0, lazy=True).X[0:10:2]


@given(
    dim=st.integers(2, 30),
    positive=st.integers(1, 4),
    negative=st.integers(1, 4),
    extra=st.integers(0, 1100),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    rotate=st.none() | st.integers(0, 2**40),
    lazy=st.booleans(),
)
def test_shapes_and_types_for_any_size(dim, positive, negative, extra, dtype, rotate, lazy):
    dim, n = max(dim, positive + negative), positive + negative + extra
    mixture = OrthonormalMixture(dim, positive, negative, 0.5, rotate=rotate, dtype=dtype)
    data = mixture.sample(n, seed=extra, lazy=lazy)
    assert data.rows().shape == (n, dim) and data.rows().dtype == data.y.dtype == data.centres.dtype == dtype
    assert data.cluster.dtype == torch.int64 and data.binary and data.classes == 2
    assert torch.equal(data.centres, mixture.centres)


FIRST_CLUSTERS = [0, 1, 1, 0]
FIRST_ROW = [1.316598894718058, 0.211910761972567, 0.094109225669771, -0.051288508729672]
