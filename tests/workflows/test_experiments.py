import pytest

from polyrelu.sweep import Sweep, run_sweep
from polyrelu.workflows.experiments import PUBLISHED, mixture
from polyrelu.workflows.flow.settings import FlowSettings

SMALL = {"clusters": "2+2", "dim": 40, "samples": 400, "width": 40, "points": 20}


@pytest.mark.slow
def test_mixture_measures_what_training_does_to_each_p(tmp_path):
    sweep = Sweep.grid("polyrelu.workflows.experiments:mixture", {"p": [1, 3]}, SMALL)
    averages, centres = (record.result for record in run_sweep(sweep, tmp_path, workers=1))
    assert averages["status"] == centres["status"] == "LOSS"
    assert averages["log10_loss"] <= -2 and averages["accuracy"] == averages["clean"] == 1
    assert averages["cos_average"] > 0.99 > 0.9 > averages["cos_centre"] and averages["covered"] == 0
    assert centres["cos_centre"] > 0.99 > 0.9 > centres["cos_average"] and centres["covered"] == 4
    assert averages["dist_average"] < 0.5 < averages["dist_centre"]
    assert centres["dist_centre"] < 0.1 < centres["dist_average"]
    assert abs(averages["radius"]["upper"] - 0.5) < 0.03  # 1/sqrt(K), K = 4
    assert abs(centres["radius"]["upper"] - 0.7071) < 0.03
    for found in (averages, centres):
        assert found["radius"]["lower"] <= found["radius"]["upper"] <= found["radius"]["lower"] * 1.002
        assert list(found["certified"]) == ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8"]
        assert all(found["certified"][radius] <= found["attacked"][radius] for radius in found["certified"])
    assert centres == mixture(p=3, **SMALL)  # the same bits in a process of its own and here
    assert "radius" not in mixture(p=3, **{**SMALL, "points": 0})


def test_mixture_has_the_defaults_of_the_flow():
    import inspect

    defaults = {one.name: one.default for one in inspect.signature(mixture).parameters.values()}
    shared = defaults.keys() & FlowSettings().as_json().keys() - {"p", "until_loss"}
    assert len(shared) == 12 and all(defaults[name] == getattr(PUBLISHED, name) for name in shared)
    assert {"until_loss": defaults["until_loss"]} == FlowSettings().targets
