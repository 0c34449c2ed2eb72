"""What the commands run, with their settings; what needs torch is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyrelu.lazy import lazy_names
from polyrelu.workflows.evaluate.settings import EvaluationSettings, parse_radii
from polyrelu.workflows.flow.settings import DTYPES, LOSSES, NET_FILE, RUN_FILE, STARTS, TRAJECTORY_FILE, FlowSettings
from polyrelu.workflows.records import to_argv

if TYPE_CHECKING:
    from polyrelu.workflows.diagnose import DiagnosisSettings, run_diagnosis
    from polyrelu.workflows.evaluate.inputs import read_net
    from polyrelu.workflows.evaluate.run import Evaluation, evaluation_tables, run_evaluation
    from polyrelu.workflows.fit import FitSettings, run_fit
    from polyrelu.workflows.flow.run import FlowRun, read_run_record, read_trajectory, resume_flow, run_flow
    from polyrelu.workflows.inspect.inputs import InspectionSettings
    from polyrelu.workflows.inspect.run import Inspection, run_inspection
    from polyrelu.workflows.inspect.table import inspection_table
    from polyrelu.workflows.predict.run import Predictions, run_prediction
    from polyrelu.workflows.reproduce import Reproduction, ReproductionSettings, measure_claims, write_page

_MODULES = {
    "diagnose": ("DiagnosisSettings", "run_diagnosis"),
    "evaluate.inputs": ("read_net",),
    "evaluate.run": ("Evaluation", "evaluation_tables", "run_evaluation"),
    "fit": ("FitSettings", "run_fit"),
    "flow.run": ("FlowRun", "read_run_record", "read_trajectory", "resume_flow", "run_flow"),
    "inspect.inputs": ("InspectionSettings",),
    "inspect.run": ("Inspection", "run_inspection"),
    "inspect.table": ("inspection_table",),
    "predict.run": ("Predictions", "run_prediction"),
    "reproduce": ("Reproduction", "ReproductionSettings", "measure_claims", "write_page"),
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


__getattr__ = lazy_names(__name__, _MODULES)
