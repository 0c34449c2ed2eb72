"""A diagnosis in sentences."""

from __future__ import annotations

import math

from polyrelu.estimator.robustness_report.measurement import EXACT, UNPROVEN
from polyrelu.estimator.robustness_report.report import AHEAD, RobustnessReport
from polyrelu.estimator.robustness_report.report_rows import ClassifierReport

AVERAGES, APART = 0.55, 0.45  # averaging scores from which a classifier is said to average, or to keep them apart


def sentences(report: RobustnessReport) -> list[str]:
    """What was found, the most important first; lengths are fractions of the typical norm."""
    return [*findings(report), direction_words(report), *report.notes]


def findings(report: RobustnessReport) -> list[str]:
    """The sub-classes, the classifier, and the head if there is one."""
    return [_structure(report), _model(report), *([] if report.head is None else [_head(report)])]


def fraction(radius: float, typical: float) -> str:
    """.27, as a part of the typical norm; "no radius tried" where nothing broke."""
    if math.isinf(radius):
        return "no radius tried"
    text = f"{radius / typical:.2f}"
    return text[1:] if text.startswith("0") else text


def percent(share: float) -> str:
    """87 %; a dash where there is no number."""
    return "–" if math.isnan(share) else f"{100 * share:.0f} %"


def _structure(report: RobustnessReport) -> str:
    structure = report.structure
    if not structure.hidden:
        return "No sub-classes were found within your classes."
    known = "" if structure.given else " hidden"
    counts = f" ({' + '.join(map(str, structure.counts))})" if len(structure.counts) <= 8 else ""
    return f"Your {len(structure.counts)} classes have {structure.total}{known} sub-classes{counts}."


def _model(report: RobustnessReport) -> str:
    part, typical, score = report.model, report.typical, report.averaging
    does = ""
    if score >= AVERAGES:
        does = f" averages them (score {score:.2f}):"
    elif score <= APART:
        does = f" tells them apart (averaging score {score:.2f}):"
    elif not math.isnan(score):
        does = f" partly averages them (score {score:.2f}):"
    if math.isinf(report.broken_at):
        return f"The {part.name}{does or ':'} fewer than half of the points were broken at all{_proof(part, typical)}."
    where = f"{fraction(report.broken_at, typical)} of the typical norm{_proof(part, typical)}"
    return (
        f"The {part.name}{does} half of the points break at {where}."
        if does
        else (f"Half of the points that the {part.name} was asked about break at {where}.")
    )


def _proof(part: ClassifierReport, typical: float) -> str:
    if part.measured.proof == UNPROVEN:
        return " (attacked; nothing is proven for this kind of classifier)"
    if part.measured.proof == EXACT:
        return " (exact)"
    return f" (certified {fraction(part.measured.proven_to, typical)})"


def _head(report: RobustnessReport) -> str:
    assert report.head is not None
    rival, head, typical = report.refit or report.model, report.head, report.typical
    mine, theirs = head.measured.broken_at, rival.measured.broken_at
    where = fraction(mine, typical)
    accuracy = (
        f"its accuracy is {percent(head.measured.clean)}, that of the {rival.name} {percent(rival.measured.clean)}"
    )
    if mine > AHEAD * theirs:
        verb = "holds to"
    elif mine * AHEAD < theirs:
        verb = "does worse, it holds to"
    else:
        verb = "does about the same, it holds to"
    said = f"A {head.name} {verb} {where}{_proof(head, typical)}; {accuracy}."
    best = report.best_rival
    if best in (rival, report.model):
        return said
    return f"{said} The {best.name} holds to {fraction(best.measured.broken_at, typical)}{_proof(best, typical)}."


def direction_words(report: RobustnessReport) -> str:
    """What one direction for all points of a class does to the classifier."""
    radius = report.radii[len(report.radii) // 2]
    share = report.model.direction.broken(radius)
    if math.isnan(share):
        return "No point is classified rightly."
    at = fraction(radius, report.typical)
    right = f"{percent(share)} of what the {report.model.name} has right"
    return f"One direction for each class, the same for all its points, breaks {right} at {at}."
