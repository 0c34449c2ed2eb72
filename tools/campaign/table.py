"""What a campaign found, by family and by certificate."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.campaign.chunk import Record
from tools.campaign.families import FAMILIES

BY_FAMILY = (
    "family",
    "pairs",
    "comparisons",
    "violations",
    "errors",
    "refused",
    "proven/found",
    "upper",
    "no break",
    "longer",
)


def by_family(records: Iterable[Record]) -> list[list[str]]:
    """One row a family, and the sum of all."""
    groups: dict[str, list[Record]] = {name: [] for name in FAMILIES}
    for record in records:
        groups[record.family].append(record)
    rows = [_row(name, some) for name, some in groups.items() if some]
    return [*rows, _row("all", [record for some in groups.values() for record in some])]


def _row(name: str, records: list[Record]) -> list[str]:
    def total(field: str) -> int:
        return sum(int(getattr(record, field)) for record in records)

    def share(field: str) -> str:
        return f"{100 * total(field) / max(1, total('uppers')):.1f} %"

    broken = sum(len(record.violations) for record in records)
    errors = sum(len(record.errors) for record in records)
    ratio = max((record.ratio for record in records), default=0.0)
    counts = [str(number) for number in (total("pairs"), total("comparisons"), broken, errors, total("refused"))]
    return [
        name,
        *counts,
        f"{ratio:.6f}" if ratio < 10 else f"{ratio:.3g}",
        share("beaten"),
        share("unbroken"),
        share("missed"),
    ]


def by_certificate(records: Iterable[Record]) -> list[list[str]]:
    """Comparisons, violations and the largest proven/found of each certificate."""
    found: dict[str, list[float]] = {}
    broken: dict[str, int] = {}
    for record in records:
        for title, (count, ratio) in record.by_certificate.items():
            before = found.get(title, [0, 0.0])
            found[title] = [before[0] + count, max(before[1], ratio)]
        for violation in record.violations:
            broken[violation["certificate"]] = broken.get(violation["certificate"], 0) + 1
    return [[title, str(int(n)), str(broken.get(title, 0)), f"{r:.6f}"] for title, (n, r) in sorted(found.items())]


def text(head: Sequence[str], rows: list[list[str]]) -> str:
    """Columns for a terminal."""
    widths = [max(len(row[i]) for row in [list(head), *rows]) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        return "  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip()

    return "\n".join(line(row) for row in [list(head), *rows])


def _markdown(head: Sequence[str], rows: list[list[str]]) -> str:
    ruler = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(head), ruler, *rows])


def commit() -> str:
    """The commit of the working tree, and whether it was changed since."""

    def git(*words: str) -> str:
        found = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        return found.stdout.strip()

    name = git("rev-parse", "--short", "HEAD") or "unknown"
    return f"{name}, with changes" if git("status", "--porcelain", "--untracked-files=no") else name


def write_docs(path: Path, records: list[Record], command: str) -> None:
    """The page of the last campaign."""
    seconds = sum(record.seconds for record in records)
    day = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    page = f"""# Campaign: certificates against independent searches

`{command}`, commit {commit()}, {day}, {seconds / 3600:.1f} hours of processor time.

Nets of every family are drawn from a seed, with points where they are hard. Every certificate that applies is asked for
a radius in l1, l2 and l-infinity; a search that shares no code with the package (numpy; grids of directions in two and
three dimensions, many starts, line searches, descents) looks for a shorter perturbation that breaks the label. A
*violation* is a perturbation, confirmed in exact arithmetic (mpmath), strictly shorter than a proven radius.

{_markdown(BY_FAMILY, by_family(records))}

*pairs*: net and point; *comparisons*: a proven radius against the shortest break found; *errors*: exceptions other than
`InputError`, and radii that are no numbers; *refused*: points for which a certificate raised `InputError` (margins that
overflow); *proven/found*: the largest ratio, 1 where a proof is exact; *upper*: brackets whose upper bound the search
beat by more than .5 %; *no break*: brackets with an infinite upper bound where the search broke the point; *longer*:
brackets whose upper bound is more than .5 % below what the search found, because the search is not exact or because
the net as it runs in float64, of which an upper bound speaks, breaks where real arithmetic does not.

{_markdown(("certificate", "comparisons", "violations", "proven/found"), by_certificate(records))}
"""
    path.write_text(page)
