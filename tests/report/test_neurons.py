"""Who carries a net, and weighted quantiles."""

import numpy as np
import pytest

from polyrelu.report.neurons import carrying, weighted_quantiles


def test_carriers_are_the_fewest_that_reach_the_share():
    # Contributions 1, 60, 30, 9: 60 + 30 + 9 = 99 of 100 is just enough, the 1 is not needed.
    logs = np.log([1.0, 60.0, 30.0, 9.0])
    assert carrying(logs, 0.98).tolist() == [1, 2, 3]
    assert carrying(logs, 0.5).tolist() == [1]
    assert carrying(logs, 0.995).tolist() == [1, 2, 3, 0]


def test_carriers_do_not_depend_on_the_size_of_the_net():
    logs = np.log([5.0, 1.0, 3.0, 0.001])
    assert carrying(logs - 2000).tolist() == carrying(logs).tolist() == [0, 2, 1]


@pytest.mark.parametrize("logs", [[], [-np.inf, -np.inf], [np.nan, 0.0]])
def test_nothing_carries_an_empty_or_broken_net(logs):
    assert carrying(np.array(logs)).size == 0


def test_a_dead_neuron_carries_nothing():
    assert carrying(np.array([0.0, -np.inf])).tolist() == [0]


def test_quantiles_with_equal_weights_are_order_statistics():
    values = np.random.default_rng(0).normal(size=(7, 11))
    found = weighted_quantiles(values, np.ones(11), (0.1, 0.5, 0.9))
    ordered = np.sort(values, axis=1)
    assert np.array_equal(found, ordered[:, [1, 5, 9]])  # ceil(11 level) - 1


def test_a_heavy_neuron_is_the_median():
    found = weighted_quantiles(np.array([[0.1, 0.9, 0.5]]), np.array([0.2, 0.7, 0.1]), (0.1, 0.5, 0.9))
    assert found.tolist() == [[0.1, 0.9, 0.9]]
