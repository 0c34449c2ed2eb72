"""A page of claims of every kind, and text that tries to break it."""

import math
import struct
import zlib
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from polyrelu.claims.claim import Claim, Standing, Verdict, at_least, at_most, within
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.judge import Outcome, judge
from polyrelu.report.pages import About, DrawnFigure
from polyrelu.report.paper_figures import PaperFigure

HOSTILE = "<script>window.broken = 1</script><img src=x onerror='window.broken = 1'>\" & more"
LONG = "w" * 300
ABOUT = About(
    "quick",
    "polyrelu reproduce --profile quick --out 'my page'",
    "local",
    2,
    datetime(2025, 11, 16, 5, 30, tzinfo=timezone.utc),
    412.3,
    {"python": "3.12.1", "torch": "2.13.0"},
)


@experiment()
def measured(profile, seed): ...


@experiment(combine=lambda values: {"sum": values["low"] + values["high"]})
def summed(profile, seed): ...


@experiment(needs=lambda profile: "Needs MNIST.")
def missing(profile, seed): ...


def claim(id, paper, checks, **more):
    more = {"standing": Standing.PRINTED, "published": "0.5", "settings": f"settings of {id}", **more}
    return Claim(
        id=id,
        sentence=f"Sentence of {id}.",
        paper=paper,
        where="Fig. 2",
        experiment=measured.name,
        checks=checks,
        **more,
    )


def runs(id, *values, note="", **part):
    return [
        Outcome(seed, part, Measured(one, note=note), "", f"results/{id}-{seed}.json", 30.0)
        for seed, one in enumerate(values)
    ]


def judgements():
    """One claim of every verdict, a broken measurement and a failed one; judged, not painted."""
    half = within("half", 0.5, 0.1)
    parts = [
        Outcome(0, {"alpha": alpha}, Measured({name: alpha}), "", f"results/B1-{name}.json", 1.0)
        for name, alpha in (("low", 0.25), ("high", 0.5))
    ]
    artefact = claim(
        "B7", "MV25", (within("truth", 1.0, 0.05),), why=(at_most("truth", 0.1), within("attack", 1.0, 0.05)),
        expects=Verdict.ARTEFACT, reason="The attack stops early.",
    )  # fmt: skip
    cases = [
        (claim("A1", "MV24", (half, at_least("other", 0.9))), runs("A1", {"half": 0.5, "other": 1, "also": 1.2e-5})),
        (claim("A2", "MV24", (half,)), runs("A2", *({"half": 0.5 + d} for d in (0.02, -0.01, 0.01)), note="Mind it.")),
        (claim("A3", "ours", (half,)), runs("A3", {"half": 0.7})),  # broken: it must turn red
        (claim("A4", "LL20", (half,)), [Outcome(0, {}, None, "ValueError: no luck", "results/A4.json")]),
        (claim("A5", "LL20", (half,)), runs("A5", {"half": math.nan})),
        (Claim(**{**vars(claim("B1", "MMV24", (within("sum", 0.75, 0.01),))), "experiment": summed.name}), parts),
        (artefact, runs("B7", {"truth": 0.0, "attack": 1.0})),
        (claim("E1", "LL20", (half,), standing=Standing.UNKNOWN, expects=Verdict.MEASURED, published=""),
         runs("E1", {"half": 0.45})),
        (Claim(**{**vars(claim("E2", "LL20", (half,))), "experiment": missing.name}), []),
        (claim("I5", "MV24", (half,), settings=HOSTILE, published=HOSTILE, reason=HOSTILE, shown=HOSTILE),
         runs('I5 "odd"', {"half": 0.5, HOSTILE: 1.0}, note=HOSTILE)),
        (claim("I6", "MV24", (within(LONG, 0.5, 0.1),), settings=LONG, published=LONG),
         runs("I6", {LONG: 0.5}, a=LONG)),
    ]  # fmt: skip
    return [judge(one, "quick", outcomes) for one, outcomes in cases]


def png(width, height):
    """A white picture."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header, rows = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0), (b"\0" + b"\xff" * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def figures():
    tall = PaperFigure("fig2", "Figure 2", "MV24", f"A caption. {HOSTILE}", ("A1", "A3", "C9"), None)
    none = PaperFigure("fig5", "Figure 5", "MV25", "Another.", ("B7",), None)
    return [DrawnFigure(tall, png(1100, 1900)), DrawnFigure(none, "E2: Needs MNIST.")]


@pytest.fixture(scope="session")
def example():
    """What the page of the example shows, and how more of it is made."""
    return SimpleNamespace(
        about=ABOUT, hostile=HOSTILE, judgements=judgements(), figures=figures(), png=png, claim=claim, runs=runs
    )
