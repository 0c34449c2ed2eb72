"""When alignment ended and when the loss fell, on records written by hand and on real runs (B13)."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import polyrelu
from polyrelu import InputError, OrthonormalMixture, PolyReLUNet, Status, Trajectory
from polyrelu.bias import alignment_index, loss_fall_index, median_alignment, phases
from polyrelu.train import History


def record(cosines, loss, contributions=None, clock=None, log_time=None):
    """A run with one row of ``cosines`` (T, h) and one ``loss`` a moment."""
    T, h = np.shape(cosines)
    clock = np.arange(T, dtype=float) if clock is None else np.asarray(clock, dtype=float)
    moments = []
    for i in range(T):
        with np.errstate(divide="ignore"):
            time = np.log(0.2 * clock[i]) if log_time is None else log_time[i]
        moments.append(
            {
                "clock": clock[i],
                "log_time": time,
                "log_loss": math.log(loss[i]),
                "accuracy": 1.0,
                "cos_average": cosines[i],
                "cos_centre": np.zeros(h),
                "log_contribution": np.zeros(h) if contributions is None else np.log(contributions[i]),
            }
        )
    return Trajectory(torch.nn.Identity(), Status.LOSS, History.from_moments(moments), 0.0, 0.0, {}, {})


def test_crossings_lie_between_moments():
    # Alignment .5 -> .75 -> 1: .9 at 1 + .15/.25 = 1.6. Loss 1, 1, 1, .81: log .9 is half of log .81, at 2.5.
    found = phases(record([[0.5], [0.75], [1.0], [1.0]], [1, 1, 1, 0.81]))
    assert found.aligned.clock == pytest.approx(1.6, abs=1e-6)
    assert found.fallen.clock == pytest.approx(2.5)
    assert found.aligned.time == pytest.approx(0.32, abs=1e-6)  # flow time .2 a step
    assert found.ratio == pytest.approx(2.5 / 1.6, rel=1e-6)
    assert found.alignment_first is True


def test_other_levels():
    run = record([[0.5], [0.75], [1.0], [1.0]], [1, 1, 1, 0.81])
    assert phases(run, cosine=0.75).aligned.clock == pytest.approx(1)
    assert phases(run, fall=0.1899999).fallen.clock == pytest.approx(3, abs=1e-5)
    assert phases(run, fall=0.2).fallen is None


def test_the_loss_may_fall_first():
    found = phases(record([[0.5], [0.5], [0.5], [1.0]], [1, 0.5, 0.25, 0.1]))
    assert found.alignment_first is False
    assert found.ratio < 1


def test_what_never_happened_is_none():
    still = phases(record([[0.5]] * 3, [1, 1, 1]))
    assert (still.aligned, still.fallen, still.ratio, still.alignment_first, still.grown) == (None,) * 5
    only = phases(record([[0.5], [0.95], [0.99]], [1, 1, 1]))
    assert (only.fallen, only.ratio, only.alignment_first) == (None, None, True)
    assert phases(record([[0.5]] * 3, [1, 0.5, 0.2])).alignment_first is False


def test_aligned_from_the_start():
    found = phases(record([[0.95], [0.99]], [1, 0.5]))
    assert (found.aligned.clock, found.aligned.time, found.ratio) == (0, 0, math.inf)


def test_passing_through_is_not_aligning_but_turning_away_later_is():
    through = phases(record([[0.1], [0.95], [0.5], [0.95], [0.99], [0.99]], [1, 1, 1, 1, 1, 0.5]))
    assert 2 < through.aligned.clock < 3
    later = phases(record([[0.1], [0.95], [0.95], [0.95], [0.5], [0.5]], [1, 1, 1, 0.5, 0.2, 0.1]))
    assert 0 < later.aligned.clock < 1


def test_only_neurons_that_carry_the_final_net_count():
    # The first neuron makes the net: the two others, never aligned, together hold less than 1 %.
    cosines = np.array([[0.2, 0.1, 0.1], [0.96, 0.1, 0.1], [0.99, 0.1, 0.1]])
    sizes = np.array([[1, 1, 1], [1, 1, 1], [1000, 1, 1]]) * 1e-6
    run = record(cosines, [1, 1, 0.5], sizes)
    assert median_alignment(run.history) == pytest.approx([0.2, 0.96, 0.99])
    assert phases(run).alignment_first
    assert (
        phases(replace(run, history=replace(run.history, log_contribution=run.history.log_contribution * 0))).aligned
        is None
    )


def test_growth_between_the_phases():
    # Aligned at moment 1 with sum 2e-6; fallen at 1.5, half-way in the log to a sum of .02: a factor 1e-2.
    sizes = [[1e-6, 1e-6], [1e-6, 1e-6], [0.01, 0.01]]
    found = phases(record([[0.5, 0.5], [0.9, 0.9], [1, 1]], [1, 1, 0.81], sizes))
    assert found.grown == pytest.approx(math.log(1e-2), rel=1e-5)


def test_times_no_float_holds():
    run = record([[0.5], [1.0], [1.0]], [1, 1, 0.5], log_time=[-np.inf, 800.0, 2500.0])
    found = phases(run)
    assert found.aligned.time == math.inf
    assert found.aligned.log_time == pytest.approx(800 + math.log(0.8), abs=1e-6)
    assert found.ratio == math.inf


def test_aligned_means_from_then_on():
    assert alignment_index(np.array([0.1, 0.95, 0.5, 0.92, 0.99])) == 3
    assert alignment_index(np.array([0.1, 0.95, 0.5])) is None
    assert alignment_index(np.array([0.95])) == 0


def test_fallen_is_the_first_moment_below():
    history = record([[0.5]] * 4, [1, 0.95, 0.89, 0.5]).history
    assert loss_fall_index(history) == 2
    assert loss_fall_index(history, 0.6) is None


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_directions_come_first_in_a_flow(p):
    # B13 on a small setting: aligned well before the loss has fallen by a tenth.
    data = OrthonormalMixture(dim=50, positive=3, negative=2, alpha=0.1).sample(500, seed=0)
    found = phases(polyrelu.flow(PolyReLUNet(50, 40, p, init="balanced", scale=1e-7, seed=0), data))
    assert found.alignment_first
    assert found.ratio > 1.3
    assert found.grown < math.log(0.1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clock": np.zeros(0)}, "no recorded moments"),
        ({"log_contribution": np.zeros((2, 0))}, "no neurons were recorded"),
        ({"log_contribution": np.full((2, 1), -np.inf)}, "no neuron carries"),
    ],
)
def test_records_with_nothing_to_see_are_refused(change, words):
    run = record([[0.5], [0.6]], [1, 1])
    with pytest.raises(InputError, match=words):
        phases(replace(run, history=replace(run.history, **change)))


@pytest.mark.parametrize("settings", [{"cosine": 1.0}, {"fall": 0.0}])
def test_levels_lie_between_0_and_1(settings):
    with pytest.raises(InputError, match="between 0 and 1"):
        phases(record([[0.5]], [1]), **settings)
