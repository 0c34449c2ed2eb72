"""The papers run again: claims chosen, measured through the sweep, judged, drawn, and put on one page.

DIR/results/*.json (one for each run of an experiment), DIR/claims.json, DIR/figures/*.png, DIR/index.html
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, final

from polyrelu._version import __version__
from polyrelu.claims import (
    PROFILES,
    Claim,
    Judgement,
    Outcome,
    Profile,
    for_profile,
    judge_all,
    outcomes,
    select,
    sweep_of,
)
from polyrelu.errors import InputError, require
from polyrelu.progress import Progress
from polyrelu.report.figures import save_figure
from polyrelu.report.pages import About, DrawnFigure, write_claims_page
from polyrelu.report.paper_figures import FIGURES, PaperFigure
from polyrelu.sweep import run_sweep
from polyrelu.workflows.records import plain, to_argv, versions, write_record


@final
@dataclass(frozen=True)
class ReproductionSettings:
    """What is asked for. ``only``: ids of claims or figures, or groups; nothing means everything."""

    only: tuple[str, ...] = ()
    profile: str = "quick"
    seeds: int | None = None
    seed: int = 0
    engine: str = "local"
    workers: int | None = None
    address: str | None = None
    retry_failed: bool = False

    def __post_init__(self) -> None:
        require(self.profile in PROFILES, "profile", self.profile, f"one of {', '.join(PROFILES)}")
        require(self.seeds is None or self.seeds >= 1, "seeds", self.seeds, "a whole number >= 1")
        require(self.seed >= 0, "seed", self.seed, "a whole number >= 0")

    @property
    def size(self) -> Profile:
        """The profile, checked."""
        return "paper" if self.profile == "paper" else "quick"

    def claims(self) -> list[Claim]:
        """The claims asked for, a figure standing for those that it shows."""
        names: list[str] = []
        for name in self.only:
            figure = next((figure for figure in FIGURES if figure.id == name.lower()), None)
            try:
                names += figure.claims if figure else [claim.id for claim in select([name])]
            except InputError as error:
                raise InputError(f"{error} Figures: {', '.join(figure.id for figure in FIGURES)}") from None
        return select(names)

    def figures(self, claims: Sequence[Claim]) -> list[PaperFigure]:
        """The figures asked for by name, or those whose claims are all asked for."""
        ids = {claim.id for claim in claims}
        return [figure for figure in FIGURES if ids.issuperset(figure.claims)]

    def command(self, out: str, page: bool = True) -> str:
        """The command that makes this again, with its page or without."""
        words = ("reproduce",) if page else ("claims", "run", *self.only)
        options = {
            "only": self.only if page else None,
            "profile": self.profile,
            "seeds": self.seeds,
            "seed": self.seed or None,
            "engine": None if self.engine == "local" else self.engine,
            "workers": self.workers,
            "address": self.address,
        }
        return to_argv(*words, **options, out=out)


@final
@dataclass(frozen=True)
class Reproduction:
    """What came out, and where it is kept."""

    folder: Path
    settings: ReproductionSettings
    judgements: tuple[Judgement, ...]
    kept: dict[str, list[Outcome]]
    started: float
    seconds: float

    @property
    def surprises(self) -> list[Judgement]:
        """Claims that we stand for and that did not come out."""
        return [judgement for judgement in self.judgements if not judgement.as_expected]

    @property
    def place(self) -> str:
        """The folder as commands on the page name it: as it was given, unless that names a place on this machine."""
        return self.folder.name if self.folder.is_absolute() else str(self.folder)

    def versions(self) -> dict[str, str]:
        """What computed the numbers; several where a folder was filled by several."""
        found: dict[str, set[str]] = {}
        for outcome in (outcome for judgement in self.judgements for outcome in judgement.outcomes):
            for name, version in {**outcome.versions, "polyrelu": __version__}.items():
                found.setdefault(name, set()).add(version)
        return {name: " and ".join(sorted(several)) for name, several in found.items()} or versions()

    def record(self) -> dict[str, Any]:
        """What claims.json holds."""
        return {
            "format": "polyrelu-claims-1",
            "command": self.settings.command(self.place),
            "settings": asdict(self.settings),
            "versions": self.versions(),
            "seconds": round(self.seconds, 1),
            "claims": [claim_record(judgement) for judgement in self.judgements],
        }


def measure_claims(settings: ReproductionSettings, out: str | Path, progress: Progress) -> Reproduction:
    """Measure what is missing, judge everything and keep the verdicts."""
    claims = settings.claims()
    sweep = sweep_of(claims, settings.size, settings.seeds, settings.seed)
    started, began = time.time(), time.perf_counter()
    records = run_sweep(
        sweep, out, engine=settings.engine, workers=settings.workers, address=settings.address,
        retry_failed=settings.retry_failed, progress=progress,
    )  # fmt: skip
    kept = outcomes(records)
    judgements = tuple(judge_all(claims, settings.size, kept))
    result = Reproduction(Path(out), settings, judgements, kept, started, time.perf_counter() - began)
    write_record(result.folder / "claims.json", result.record(), indent=1, ensure_ascii=False)
    return result


def claim_record(judgement: Judgement) -> dict[str, Any]:
    """One claim as plain values; a number that is not finite is None."""
    claim = judgement.claim
    return {
        "id": claim.id,
        "claim": claim.sentence,
        "source": f"{claim.paper}, {claim.where}",
        "standing": claim.standing.value,
        "published": claim.published,
        "profile": judgement.profile,
        "settings": for_profile(claim.settings, judgement.profile),
        "verdict": judgement.verdict.value,
        "as_expected": judgement.as_expected,
        "reason": judgement.reason,
        "numbers": [
            {
                "name": number.name,
                "values": plain(number.values),
                "low": plain(number.check.low) if number.check else None,
                "high": plain(number.check.high) if number.check else None,
                "published": number.check.published if number.check else None,
                "holds": number.holds,
            }
            for number in judgement.numbers
        ],
        "files": [outcome.file for outcome in judgement.outcomes],
        "seconds": round(judgement.seconds, 3),
    }


def write_page(result: Reproduction) -> Path:
    """Draw what is not drawn yet and write index.html; returns its path."""
    settings, folder = result.settings, result.folder
    about = About(
        profile=settings.size,
        command=settings.command(result.place),
        engine=settings.engine,
        workers=settings.workers,
        started=datetime.fromtimestamp(result.started).astimezone(),
        seconds=result.seconds,
        versions=result.versions(),
        seed=settings.seed,
        seeds=settings.seeds,
    )
    asked = [judgement.claim for judgement in result.judgements]
    figures = [DrawnFigure(figure, _picture(result, figure)) for figure in settings.figures(asked)]
    return write_claims_page(folder / "index.html", about, result.judgements, figures)


def _picture(result: Reproduction, figure: PaperFigure) -> bytes | str:
    """The PNG of a figure, or why there is none; drawn again only if its results or its code changed."""
    shown = [judgement for judgement in result.judgements if judgement.claim.id in figure.claims]
    wanting = [judgement for judgement in shown if not judgement.numbers]
    if wanting:
        return f"{wanting[0].claim.id}: {wanting[0].reason}"
    files = sorted({outcome.file for judgement in shown for outcome in judgement.outcomes})
    package = Path(__file__).parents[1]
    sources = [path for part in ("claims", "report") for path in sorted((package / part).rglob("*.py"))]
    code = b"".join(path.read_bytes() for path in sources)
    key = hashlib.sha256(code + json.dumps(files).encode()).hexdigest()[:12]
    folder = result.folder / "figures"
    folder.mkdir(exist_ok=True)
    path = folder / f"{figure.id}-{key}.png"
    if not path.exists():
        for stale in folder.glob(f"{figure.id}-{'?' * 12}.png"):
            stale.unlink()
        try:
            save_figure(figure.draw(result.kept), path)
        except Exception as error:  # the numbers are worth a page without this picture
            return f"drawing it failed, {type(error).__name__}: {error}"
    return path.read_bytes()
