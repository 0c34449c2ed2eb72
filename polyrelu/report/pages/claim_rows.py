"""One claim as its row of the page shows it: badge, numbers in words, links to the files they come from."""

from __future__ import annotations

import math
from typing import NamedTuple, final
from urllib.parse import quote

from polyrelu.claims import Check, Judgement, Number, Outcome, Verdict, for_profile
from polyrelu.report.number_text import number_text

CLAIM_GROUPS = {
    "A": "Ideal classifiers",
    "B": "Training on the orthonormal mixture",
    "C": "Feature averaging",
    "D": "Real data",
    "E": "Margin, KKT points, alignment",
    "I": "Inconsistencies of the sources",
}


class VerdictMark(NamedTuple):
    """How a verdict is marked: never by colour alone."""

    name: str  # in addresses and style sheets
    symbol: str


VERDICT_MARKS = {
    Verdict.REPRODUCED: VerdictMark("reproduced", "✓"),
    Verdict.DIFFERS: VerdictMark("differs", "✗"),
    Verdict.ARTEFACT: VerdictMark("artefact", "≠"),
    Verdict.MEASURED: VerdictMark("measured", "○"),
    Verdict.NOT_RUN: VerdictMark("not-run", "–"),
}


class StripPlot(NamedTuple):
    """In % of its axis: start and length of what the check allows and of the range of seeds, median, published."""

    allowed: tuple[float, float]
    spread: tuple[float, float]
    middle: float
    published: float | None


@final
class Row:
    """A judgement and how it is shown: ``mark`` is colour and symbol, ``settings`` what was run, in words."""

    def __init__(self, judgement: Judgement) -> None:
        claim, measured = judgement.claim, [one.measured for one in judgement.outcomes if one.measured]
        self.judgement, self.claim, self.id = judgement, claim, claim.id
        self.mark = VERDICT_MARKS[judgement.verdict]
        self.settings = for_profile(claim.settings, judgement.profile)
        self.expected = for_profile(claim.expects, judgement.profile).value
        self.notes = [note for note in dict.fromkeys(one.note for one in measured) if note]

    @property
    def tally(self) -> str:
        """How many of the source's numbers lie where they should, when there are several."""
        numbers = self.numbers[0][1] if self.judgement.numbers else ()
        right = sum(number.holds is True for number in numbers)
        if len(numbers) < 2:
            return ""
        return f"{'all' if right == len(numbers) else f'{right} of'} {len(numbers)} numbers hold"

    @property
    def numbers(self) -> list[tuple[str, tuple[Number, ...]]]:
        """(heading, numbers): those of the claim, those that show an artefact, and the rest."""
        found, profile = self.judgement.numbers, self.judgement.profile
        first = len(for_profile(self.claim.checks, profile))
        second = first + len(for_profile(self.claim.why, profile))
        parts = [
            ("What the claim says", found[:first]),
            ("What would show that the published number is an artefact", found[first:second]),
            ("Also measured", found[second:]),
        ]
        return [(heading, numbers) for heading, numbers in parts if numbers]

    def by_seed(self, number: Number) -> list[tuple[int, str, str]]:
        """(seed, value, link): to the result file, or to the list of files if several were put together."""
        runs: dict[int, list[Outcome]] = {}
        for outcome in self.judgement.outcomes:
            runs.setdefault(outcome.seed, []).append(outcome)
        found = []
        for (seed, outcomes), value in zip(runs.items(), number.values, strict=True):
            own = [one for one in outcomes if one.measured and number.quantity in one.measured.values] or outcomes
            found.append(
                (seed, _value_text(value, number), file_link(own[0]) if len(own) == 1 else f"#{self.id}-files")
            )
        return found

    def link(self, number: Number) -> str:
        """Where the median of a number comes from."""
        ordered = sorted(range(len(number.values)), key=lambda seed: number.values[seed])
        return self.by_seed(number)[ordered[len(ordered) // 2]][2]

    def files(self) -> list[tuple[str, str, str]]:
        """(what, link, error) of every result file."""
        return [(_run_text(one), file_link(one), one.error) for one in self.judgement.outcomes if one.file]

    @staticmethod
    def value(number: Number) -> str:
        """The median over the seeds, if every seed gave a number."""
        missing = [value for value in number.values if math.isnan(value)]
        return _value_text(missing[0] if missing else number.middle, number)

    @staticmethod
    def band(number: Number) -> str:
        """The range over the seeds, or how many of them gave no number."""
        missing, seeds = sum(map(math.isnan, number.values)), len(number.values)
        if seeds == 1:
            return ""
        if missing:
            return f"for {missing} of {seeds} seeds"
        low, high = _value_text(min(number.values), number), _value_text(max(number.values), number)
        if low == high:
            return "for both seeds" if seeds == 2 else f"for all {seeds} seeds"
        return f"({low} to {high} over {seeds} seeds)"

    @staticmethod
    def strip(number: Number) -> StripPlot | None:
        """The number on an axis of its own; None where there is nothing to compare with."""
        check, values = number.check, number.values
        if check is None or not all(map(math.isfinite, values)):
            return None
        marks = [mark for mark in (check.low, check.high, check.published, *values) if mark is not None]
        finite = [mark for mark in marks if math.isfinite(mark)]
        margin = 0.15 * (max(finite) - min(finite)) or 0.1 * abs(finite[0]) or 1.0
        start, length = min(finite) - margin, max(finite) - min(finite) + 2 * margin

        def place(mark: float) -> float:
            return round(100 * min(max((mark - start) / length, 0), 1), 2)

        low, high = place(check.low), place(check.high)
        published = None if check.published is None else place(check.published)
        spread = place(min(values)), round(place(max(values)) - place(min(values)), 2)
        return StripPlot((low, round(high - low, 2)), spread, place(number.middle), published)


def file_link(outcome: Outcome) -> str:
    """The result file, relative to the page."""
    return quote(outcome.file)


def interval_text(check: Check) -> str:
    """Where a number must lie."""
    if check.low == check.high:
        return f"exactly {number_text(check.low)}"
    if check.high == math.inf:
        return f"at least {number_text(check.low)}"
    if check.low == -math.inf:
        return f"at most {number_text(check.high)}"
    return f"{number_text(check.low)} to {number_text(check.high)}"


def duration_text(seconds: float) -> str:
    """0.4 s, 12 s, 4 min 5 s, 2 h 3 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _value_text(value: float, number: Number) -> str:
    """The value; with all its digits if rounding would put it on the bound that it misses."""
    check = number.check
    missed = check is not None and not check.holds(value) and not math.isnan(value)
    if missed and check is not None and number_text(value) in (number_text(check.low), number_text(check.high)):
        return repr(value)
    return number_text(value)


def _run_text(outcome: Outcome) -> str:
    part = outcome.part.items()
    words = [f"{key} {number_text(value) if isinstance(value, float) else value}" for key, value in part]
    return ", ".join([*words, f"seed {outcome.seed}"])
