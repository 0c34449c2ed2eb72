"""What the papers say, measured again: a sentence with its checks, the experiment that measures, the published numbers.

    claims = select(["B7"])
    judge_all(claims, "quick", outcomes(run_sweep(sweep_of(claims, "quick"), "out/claims")))

Nothing here imports torch before an experiment is looked at.
"""

from polyrelu.claims.catalogue import catalogue, experiments, select
from polyrelu.claims.claim import Check, Claim, Standing, Verdict, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured, experiment, load_experiment
from polyrelu.claims.identity import code_identity
from polyrelu.claims.judge import Judgement, Number, Outcome, judge
from polyrelu.claims.measure import judge_all, outcomes, settings_of, sweep_of
from polyrelu.claims.papers import PAPERS, Paper
from polyrelu.claims.profile import PROFILES, Profile, filled, for_profile
from polyrelu.claims.quantity import Quantity, Values

__all__ = [
    "PAPERS",
    "PROFILES",
    "Check",
    "Claim",
    "Experiment",
    "Judgement",
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
    "code_identity",
    "experiment",
    "experiments",
    "filled",
    "for_profile",
    "judge",
    "judge_all",
    "load_experiment",
    "near",
    "outcomes",
    "select",
    "settings_of",
    "sweep_of",
]
