"""One inspection and its folder: everything that can be measured of a net, as a table, sentences and pictures.

DIR/inspection.json (kept up to date while it goes), table.csv at the end, and NAME.png, NAME.svg for every picture.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from polyrelu.bias import CLASS_AVERAGES
from polyrelu.errors import InputError
from polyrelu.files import output_folder
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.workflows.inspect import figures, margins, net_measurements, neurons
from polyrelu.workflows.inspect.inputs import InspectedNet, InspectionSettings, read_inspected_net
from polyrelu.workflows.inspect.table import FAILED, MEASURED, NOTHING, Measurement, does_not_apply, sentence
from polyrelu.workflows.records import read_record, versions, write_csv, write_record

FORMAT = "polyrelu-inspection-1"
RECORD, TABLE = "inspection.json", "table.csv"


@final
@dataclass(frozen=True)
class InspectionStep:
    """Something to measure: what it is called, rows of the table, and the pictures that go with it by name."""

    name: str
    measure: Callable[[InspectedNet], list[Measurement]]
    pictures: tuple[tuple[str, Callable[[InspectedNet], Any]], ...] = ()
    poly: bool = False  # of a PolyReLUNet only
    shallow: bool = False  # of nets of one hidden layer only
    trained: bool = False  # of a trajectory

    def concerns(self, subject: InspectedNet) -> bool:
        """Is it a question to ask of this subject at all?"""
        if (self.trained and subject.trajectory is None) or (self.shallow and not subject.shallow):
            return False
        return not self.poly or isinstance(subject.net, PolyReLUNet)


INSPECTION_STEPS = (
    InspectionStep("accuracy on these rows", net_measurements.accuracy),
    InspectionStep("sub-classes", net_measurements.subclasses),
    InspectionStep("neurons", neurons.known),
    InspectionStep("what was learned", neurons.learned, (("coefficients", figures.coefficients),), shallow=True),
    InspectionStep("neurons that count", neurons.carriers, (("contributions", figures.contributions),), poly=True),
    InspectionStep("cosines of the neurons", neurons.directions, (("cosines", figures.cosines),), poly=True),
    InspectionStep("cones of activation", neurons.activation_cones, (("sphere", figures.sphere),), shallow=True),
    InspectionStep("regions of the centres", neurons.centre_regions, poly=True),
    InspectionStep("balance of the layers", neurons.layer_balance, poly=True),
    InspectionStep("alignment field", neurons.field_alignment, poly=True),
    InspectionStep("stationary directions", neurons.stationary, poly=True),
    InspectionStep("universal radius", net_measurements.universal_radius),
    InspectionStep("slope over margin", net_measurements.slope_over_margin),
    InspectionStep("phases of training", margins.order_of_phases, (("phases", figures.phase_line),)),
    InspectionStep("margin over time", margins.margin_over_time, (("margins", figures.margin_line),), trained=True),
    InspectionStep("homogeneity", margins.homogeneity),
    InspectionStep("margins", margins.margin_sizes),
    InspectionStep("distance to linear", net_measurements.distance_to_linear),
    InspectionStep("stable ranks", net_measurements.stable_ranks),
    InspectionStep("Lipschitz constant", net_measurements.lipschitz_constant),
    InspectionStep(
        "correlation of the data", net_measurements.data_correlation, (("correlation", figures.correlations),)
    ),
    InspectionStep("KKT residual", margins.kkt_residual),
)
DURATION_NOTES = {  # said of steps that take long
    "KKT residual": " (up to half a minute for 20,000 rows)",
}


@final
@dataclass(frozen=True)
class Inspection:
    """A finished inspection: where it lives, what was asked, what came out."""

    folder: Path
    settings: InspectionSettings
    subject: InspectedNet
    rows: tuple[Measurement, ...]
    pictures: tuple[str, ...]
    seconds: float
    status: str = "done"

    @property
    def title(self) -> str:
        """What the table is called."""
        return f"{self.subject.name} on {self.subject.data.name}, {len(self.subject.data)} rows"

    @property
    def headline(self) -> str:
        """The inspection in a sentence or two."""
        return headline(self.subject, self.rows)

    def record(self) -> dict[str, Any]:
        """What inspection.json holds: enough to make it again, and what it gave."""
        return {
            "format": FORMAT,
            "status": self.status,
            "command": self.settings.command(self.folder.name or "."),
            "settings": asdict(self.settings),
            "versions": versions(),
            "net": self.subject.kind,
            "rows": len(self.subject.data),
            "headline": self.headline if self.status == "done" else None,
            "measurements": [row.as_json() for row in self.rows],
            "pictures": list(self.pictures),
            "seconds": round(self.seconds, 3),
        }

    def save(self) -> None:
        """Write the record; and the table, when all is done."""
        if self.status == "done":
            rows = [(row.name, row.value, row.words, row.status) for row in self.rows]
            write_csv(self.folder / TABLE, ("measurement", "value", "in plain words", "status"), rows)
        write_record(self.folder / RECORD, self.record())


def run_inspection(settings: InspectionSettings, out: str | Path, progress: Progress) -> Inspection:
    """Measure and draw all that applies, one thing after the other; what does not apply says why."""
    began = time.perf_counter()
    progress.stage("inspect")
    rows: list[Measurement] = []
    pictures: list[str] = []
    say_step(progress, "reading the net and the data", None)
    subject = read_inspected_net(settings)
    folder = output_folder(out)
    _clear(folder)

    def report(what: str) -> None:
        say_step(progress, what, len(pictures))

    def so_far(status: str = "unfinished") -> Inspection:
        took = time.perf_counter() - began
        return Inspection(folder, settings, subject, tuple(rows), tuple(pictures), took, status)

    so_far().save()
    for step in INSPECTION_STEPS:
        if not step.concerns(subject):
            continue
        report("measuring the " + step.name + DURATION_NOTES.get(step.name, ""))
        rows += _measured(step, subject)
        for name, draw in step.pictures:
            report(f"drawing the picture {name}")
            pictures += _drawn(folder, name, draw, subject)
        so_far().save()
    report("writing the table")
    result = so_far("done")
    result.save()
    return result


def say_step(progress: Progress, what: str, pictures: int | None) -> None:
    """This is being done now; an interruption waits for nothing, every file is whole at any time."""
    kept = "nothing was done" if pictures is None else f"{pictures} picture files and inspection.json are kept"
    progress.keep(f"interrupted while {what.split(' (')[0]}; {kept}. Run the same command again.")
    progress.update(doing=what)


def headline(subject: InspectedNet, rows: tuple[Measurement, ...]) -> str:
    """What was learned, and where to expect it to break; from what could be measured."""
    found = {row.name: row for row in rows if row.status == MEASURED}
    first = f"{subject.kind}: no neurons to look at"
    if subject.shallow and "what was learned" not in found:
        first = next(row.words.rstrip(".") for row in rows if row.name == "what was learned")
    elif "what was learned" in found:
        first = neurons.verdict(subject.decoupling.learned)
        if subject.estimated:
            first += f" (sub-classes were estimated: {found['sub-classes'].value})"
    elif "distance to linear" in found:
        first = f"{subject.kind}: a linear map misses {found['distance to linear'].value} of it"
    radius = found.get("universal radius")
    if radius is None:
        return sentence(first)
    at = subject.universal.radius
    if 0 < at < float("inf"):
        way = "direction" if subject.data.binary else "directions of the class pairs"
        averages = subject.shallow and subject.decoupling.learned.verdict == CLASS_AVERAGES
        nearer = "" if averages else " (other directions may be nearer)"
        return sentence(f"{first}; expect it to break at radius {radius.value} along the universal {way}{nearer}")
    return sentence(f"{first}; {net_measurements.breaks(subject)}")


def _measured(step: InspectionStep, subject: InspectedNet) -> list[Measurement]:
    """The rows of a step; one that says why, where there are none."""
    try:
        return step.measure(subject)
    except InputError as error:
        why = " ".join(str(error).split()).removeprefix(f"data={subject.data.name}: ")
        return [does_not_apply(step.name, why)]
    except (ArithmeticError, MemoryError, RuntimeError, ValueError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            why = "not enough memory; lower --limit"
        return [Measurement(step.name, NOTHING, f"could not be measured: {why}", status=FAILED)]


def _drawn(folder: Path, name: str, draw: Callable[[InspectedNet], Any], subject: InspectedNet) -> list[str]:
    """The names of the files of a picture; none where there is nothing to draw."""
    from polyrelu.report.figures import save_figure

    try:
        figure = draw(subject)
    except (ArithmeticError, ValueError):  # InputError is a ValueError
        return []
    return [save_figure(figure, folder / f"{name}.{kind}").name for kind in ("png", "svg")]


def _clear(folder: Path) -> None:
    """Take away the results of an earlier inspection, which may be of another net; refuse files of another program."""
    expected = "an inspection written by this version of polyrelu; remove it or choose another --out"
    record = read_record(folder / RECORD, FORMAT, expected, pictures=list)
    if record is None:
        return
    ours = {f"{name}.{kind}" for step in INSPECTION_STEPS for name, _ in step.pictures for kind in ("png", "svg")}
    for name in (RECORD, TABLE, *(name for name in record["pictures"] if name in ours)):
        (folder / name).unlink(missing_ok=True)
