"""How many cases of each kind, what came of them, and how far it is."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

from tools.fuzz.judge import MOST, Outcome

WHATS = ("traceback", "text", "warning", "code", "memory", "hang", "dead", "tool")


class Tally:
    """Outcomes counted."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.grown = total, 0, 0
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.findings: list[Outcome] = []
        self._shown = -30.0

    def add(self, outcome: Outcome) -> None:
        """Count one."""
        kind = outcome.case.rpartition(":")[0]
        group = f"calls: {_group(kind)}" if kind.startswith("polyrelu.") else kind
        self.counts[group][outcome.what or ("refused" if outcome.refused else "result")] += 1
        self.grown = max(self.grown, outcome.grown)
        self.done += 1
        if outcome.what:
            self.findings.append(outcome)

    def show(self, outcome: Outcome, whole: bool) -> None:
        """Print a finding: its last line, or all of it."""
        lines = outcome.details.strip().splitlines() or [""]
        print(f"{outcome.what}  {outcome.case}  {outcome.words}\n    {lines[-1][:200]}", flush=True)
        if whole:
            print(outcome.details)

    def progress(self, seconds: float) -> None:
        """So many done and the time left, every 5 seconds; where nobody watches every 30, on a line of its own."""
        terminal = sys.stderr.isatty()
        if seconds - self._shown < (5 if terminal else 30) and self.done < self.total:
            return
        self._shown = seconds
        left = seconds / self.done * (self.total - self.done)
        text = f"{self.done} of {self.total} cases, {len(self.findings)} findings, {left / 60:.1f} minutes left"
        print(f"{text:<78}", end="\r" if terminal and self.done < self.total else "\n", file=sys.stderr, flush=True)

    def table(self, seconds: float) -> str:
        """A row for each kind, and the sum."""
        columns = ("result", "refused", *WHATS)
        lines = [f"{'kind':<18}{'cases':>8}" + "".join(f"{name:>11}" for name in columns)]
        total: Counter[str] = Counter()
        for kind in sorted(self.counts, key=lambda name: (name.startswith("calls"), name)):
            counted = self.counts[kind]
            total += counted
            lines.append(_line(kind, counted, columns))
        lines.append(_line("all", total, columns))
        lines.append(
            f"{len(self.findings)} findings in {self.done} cases, {seconds:.0f} s; memory of a case at most "
            f"{self.grown / 2**20:.0f} MiB (allowed: {MOST / 2**20:.0f})"
        )
        return "\n".join(lines)


def _line(kind: str, counted: Counter[str], columns: tuple[str, ...]) -> str:
    return f"{kind:<18}{counted.total():>8}" + "".join(f"{counted[name]:>11}" for name in columns)


def _group(path: str) -> str:
    words = path.split(".")
    return words[1] if len(words) > 2 and words[1].islower() else "polyrelu"
