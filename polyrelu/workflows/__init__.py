"""What the commands run: a folder for each, with its settings and what it does. Names are imported when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyrelu.workflows.diagnose.run import run_diagnosis
    from polyrelu.workflows.diagnose.settings import DiagnosisSettings
    from polyrelu.workflows.evaluate.inputs import read_net
    from polyrelu.workflows.evaluate.run import Evaluation, run_evaluation
    from polyrelu.workflows.evaluate.settings import EvaluationSettings, parse_radii
    from polyrelu.workflows.evaluate.show import evaluation_tables
    from polyrelu.workflows.fit.run import FittedHead, run_fit
    from polyrelu.workflows.fit.settings import FitSettings
    from polyrelu.workflows.flow.run import (
        NET_FILE,
        RUN_FILE,
        TRAJECTORY_FILE,
        FlowRun,
        read_run_record,
        read_trajectory,
        resume_flow,
        run_flow,
    )
    from polyrelu.workflows.flow.settings import DTYPES, LOSSES, STARTS, FlowSettings
    from polyrelu.workflows.inspect.run import Inspection, run_inspection
    from polyrelu.workflows.inspect.settings import InspectionSettings
    from polyrelu.workflows.inspect.table import inspection_table
    from polyrelu.workflows.predict.run import Predictions, run_prediction
    from polyrelu.workflows.records import to_argv
    from polyrelu.workflows.reproduce.run import Reproduction, ReproductionSettings, measure_claims, write_page

_MODULES = {
    "diagnose.run": ("run_diagnosis",),
    "diagnose.settings": ("DiagnosisSettings",),
    "evaluate.inputs": ("read_net",),
    "evaluate.run": ("Evaluation", "run_evaluation"),
    "evaluate.settings": ("EvaluationSettings", "parse_radii"),
    "evaluate.show": ("evaluation_tables",),
    "fit.run": ("FittedHead", "run_fit"),
    "fit.settings": ("FitSettings",),
    "flow.run": (
        "NET_FILE",
        "RUN_FILE",
        "TRAJECTORY_FILE",
        "FlowRun",
        "read_run_record",
        "read_trajectory",
        "resume_flow",
        "run_flow",
    ),
    "flow.settings": ("DTYPES", "LOSSES", "STARTS", "FlowSettings"),
    "inspect.run": ("Inspection", "run_inspection"),
    "inspect.settings": ("InspectionSettings",),
    "inspect.table": ("inspection_table",),
    "predict.run": ("Predictions", "run_prediction"),
    "records": ("to_argv",),
    "reproduce.run": ("Reproduction", "ReproductionSettings", "measure_claims", "write_page"),
}

__all__ = [
    "DTYPES",
    "LOSSES",
    "NET_FILE",
    "RUN_FILE",
    "STARTS",
    "TRAJECTORY_FILE",
    "DiagnosisSettings",
    "Evaluation",
    "EvaluationSettings",
    "FitSettings",
    "FittedHead",
    "FlowRun",
    "FlowSettings",
    "Inspection",
    "InspectionSettings",
    "Predictions",
    "Reproduction",
    "ReproductionSettings",
    "evaluation_tables",
    "inspection_table",
    "measure_claims",
    "parse_radii",
    "read_net",
    "read_run_record",
    "read_trajectory",
    "resume_flow",
    "run_diagnosis",
    "run_evaluation",
    "run_fit",
    "run_flow",
    "run_inspection",
    "run_prediction",
    "to_argv",
    "write_page",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"polyrelu.workflows.{module}"), name)
    raise AttributeError(f"module 'polyrelu.workflows' has no attribute {name!r}")
