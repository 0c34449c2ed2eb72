"""What the papers say, measured again: a sentence with its checks, the experiment that measures, the published numbers.

    claims = select(["B7"])
    judge_all(claims, "quick", outcomes(run_sweep(sweep_of(claims, "quick"), "out/claims")))

Nothing here imports torch before an experiment is loaded, nor the sweep before something is to be measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyrelu.claims.catalogue import catalogue, experiments, select
from polyrelu.claims.claim import Check, Claim, Standing, Verdict, at_least, at_most, within
from polyrelu.claims.experiment import Experiment, Measured, experiment, load_experiment
from polyrelu.claims.judge import Judgement, Number, Outcome, judge, judge_all
from polyrelu.claims.papers import PAPERS, Paper
from polyrelu.claims.profile import PROFILES, Profile, filled, for_profile
from polyrelu.claims.quantity import Key, Quantity, Values
from polyrelu.lazy import lazy_names

if TYPE_CHECKING:
    from polyrelu.claims.measure import outcomes, settings_of, sweep_of

__all__ = [
    "PAPERS",
    "PROFILES",
    "Check",
    "Claim",
    "Experiment",
    "Judgement",
    "Key",
    "Measured",
    "Number",
    "Outcome",
    "Paper",
    "Profile",
    "Quantity",
    "Standing",
    "Values",
    "Verdict",
    "at_least",
    "at_most",
    "catalogue",
    "experiment",
    "experiments",
    "filled",
    "for_profile",
    "judge",
    "judge_all",
    "load_experiment",
    "outcomes",
    "select",
    "settings_of",
    "sweep_of",
    "within",
]


__getattr__ = lazy_names(__name__, {"measure": ("outcomes", "settings_of", "sweep_of")})
