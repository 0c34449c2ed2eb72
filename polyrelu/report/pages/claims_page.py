"""The page of all claims: what was published, what was measured, and what follows. One file, nothing is fetched."""

from __future__ import annotations

import base64
import shlex
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, final

from polyrelu.claims import PAPERS, Judgement, Profile, Standing, Verdict
from polyrelu.errors import require
from polyrelu.report.pages.claim_rows import CLAIM_GROUPS, VERDICT_MARKS, Row, duration_text, interval_text
from polyrelu.report.pages.html import write_page

if TYPE_CHECKING:
    from polyrelu.report.paper_figures import PaperFigure

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
MEANINGS = {
    Verdict.REPRODUCED: "Every number of the claim lies where the source says, for every seed.",
    Verdict.DIFFERS: "At least one number lies elsewhere, or the measurement failed.",
    Verdict.ARTEFACT: "The published number does not come out when measured soundly, and further measurements show "
    "what made it (an attack that stops early, a guard in an estimator).",
    Verdict.MEASURED: "The source gives no number; ours lies where theory or our own prediction puts it.",
    Verdict.NOT_RUN: "Not measured here; the row says why.",
}


@final
@dataclass(frozen=True)
class About:
    """What was run. ``command`` makes the page again.

    workers : None means one for each core
    seeds : repeats asked for; None means as many as each experiment asks for
    """

    profile: Profile
    command: str
    engine: str
    workers: int | None
    started: datetime
    seconds: float
    versions: Mapping[str, str]
    seed: int = 0
    seeds: int | None = None

    def command_for(self, *words: str) -> str:
        """The command that makes one part of the page again, with the same size and seeds, in a folder of its own."""
        repeats = () if self.seeds is None else ("--seeds", str(self.seeds))
        first = () if self.seed == 0 else ("--seed", str(self.seed))
        return shlex.join(
            ["polyrelu", *words, "--profile", self.profile, *repeats, *first, "--out", f"out/{words[-1]}"]
        )


@final
@dataclass(frozen=True)
class DrawnFigure:
    """A figure and its ``picture``: the bytes of a PNG, or in words why there is none."""

    figure: PaperFigure
    picture: bytes | str

    def __post_init__(self) -> None:
        given = f"{self.picture[:4]!r}..."
        sound = self.picture.startswith(PNG_SIGNATURE) if isinstance(self.picture, bytes) else bool(self.picture)
        require(sound, "picture", given, f"the bytes of a PNG file or the reason why {self.figure.id} is not drawn")

    @property
    def source(self) -> str:
        """The picture as the page embeds it, or ""."""
        if isinstance(self.picture, str):
            return ""
        return "data:image/png;base64," + base64.b64encode(self.picture).decode("ascii")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, from the header of the PNG."""
        assert isinstance(self.picture, bytes)
        width, height = struct.unpack(">II", self.picture[16:24])
        return width, height


def write_claims_page(
    path: str | Path, about: About, judgements: Sequence[Judgement], figures: Sequence[DrawnFigure] = ()
) -> Path:
    """Write the page, whole or not at all, and return its path. Every text is escaped.

    judgements : in the order of the page; links to result files are relative to the folder of ``path``
    figures : each is shown under its paper, beside the verdicts of the claims it comes from
    """
    require(len(judgements) > 0, "judgements", "none", "at least one claim to show")
    rows = [Row(judgement) for judgement in judgements]
    papers = {row.claim.paper for row in rows} | {drawn.figure.paper for drawn in figures}
    return write_page(
        path,
        (__package__, "claims"),
        {"interval": interval_text, "duration": duration_text},
        images=True,
        about=about,
        rows=rows,
        by_id={row.id: row for row in rows},
        drawn=figures,
        counts=_counts(rows),
        reading=_sentences(rows),
        seeds=_seeds(rows),
        worked=sum({one.file: one.seconds for each in judgements for one in each.outcomes}.values()),
        papers={key: paper for key, paper in PAPERS.items() if key in papers},
        groups={key: name for key, name in CLAIM_GROUPS.items() if any(row.claim.group == key for row in rows)},
        marks=VERDICT_MARKS,
        meanings=MEANINGS,
        standings=[standing.value for standing in Standing],
    )


def _counts(rows: Sequence[Row]) -> list[tuple[Verdict, int, float, float]]:
    """(verdict, number of claims, start and length in % of the bar) of every verdict that occurs."""
    found = Counter(row.judgement.verdict for row in rows)
    bars, start = [], 0.0
    for verdict in Verdict:
        length = 100 * found[verdict] / len(rows)
        if length:
            bars.append((verdict, found[verdict], start, length))
        start += length
    return bars


def _sentences(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """What came out in plain sentences, each with the ids that it is about."""

    def of(verdict: Verdict) -> list[str]:
        return [row.id for row in rows if row.judgement.verdict is verdict]

    def many(number: int, one: str, several: str) -> str:
        return f"{number} {one if number == 1 else several}"

    right = f"Of {many(len(rows), 'claim', 'claims')}, {len(of(Verdict.REPRODUCED))} came out as published."
    sentences: list[tuple[str, list[str]]] = [(right, [])]
    wording = {
        Verdict.DIFFERS: ("differs from what is published", "differ from what is published"),
        Verdict.ARTEFACT: (
            "published value is an artefact of how it was made", "published values are artefacts of how they were made"
        ),
        Verdict.MEASURED: ("was measured without a published number", "were measured without a published number"),
        Verdict.NOT_RUN: ("was not run", "were not run"),
    }  # fmt: skip
    for verdict, (one, several) in wording.items():
        if ids := of(verdict):
            listed = verdict in (Verdict.DIFFERS, Verdict.ARTEFACT)
            sentences.append((many(len(ids), one, several) + ("" if listed else "."), ids if listed else []))
    surprises = [row.id for row in rows if not row.judgement.as_expected]
    if surprises:
        sentences.append((many(len(surprises), "claim", "claims") + " did not come out as we expect", surprises))
    else:
        sentences.append(("Nothing came out otherwise than we expect.", []))
    return sentences


def _seeds(rows: Sequence[Row]) -> str:
    """Which seeds the numbers come from."""
    seeds = sorted({outcome.seed for row in rows for outcome in row.judgement.outcomes})
    if len(seeds) < 2:
        return str(seeds[0]) if seeds else "none"
    counts = [len({outcome.seed for outcome in row.judgement.outcomes}) for row in rows if row.judgement.outcomes]
    each = str(max(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return f"{seeds[0]} to {seeds[-1]}, {each} for each claim"
