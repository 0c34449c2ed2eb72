"""``python -m tools.campaign``: hold every certificate against independent searches; resumes."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from polyrelu.threads import cores
from tools.campaign.chunk import Record
from tools.campaign.families import FAMILIES
from tools.campaign.reproduce import reproduce, write_cases
from tools.campaign.run import run
from tools.campaign.store import Store, source_hash
from tools.campaign.table import BY_FAMILY, by_certificate, by_family, text, write_docs

LEAST = 5000  # comparisons a family


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.campaign",
        description="Hold every certificate against independent searches. Exit status 1 on a violation or an error.",
    )
    parser.add_argument("--comparisons", type=float, default=2e5, help="in all, at least 5000 a family (default 2e5)")
    parser.add_argument("--family", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="what everything is drawn from (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out/campaign"), help="records and violations")
    parser.add_argument("--workers", type=int, default=cores(), help="processes (default: the cores one may use)")
    parser.add_argument("--docs", action="store_true", help="write the tables to docs/campaign.md")
    parser.add_argument("--list", action="store_true", help="list the families")
    parser.add_argument("--reproduce", type=Path, metavar="FILE", help="make one violation again")
    return parser


def main(given: list[str] | None = None) -> int:
    """0: nothing found; 1: a violation or an error; 2: bad arguments; 130: ended by Ctrl-C."""
    parser = arguments()
    chosen = parser.parse_args(given)
    if chosen.list:
        print("\n".join(FAMILIES))
        return 0
    if chosen.reproduce is not None:
        return reproduce(chosen.reproduce)
    families = chosen.family or list(FAMILIES)
    for name in families:
        if name not in FAMILIES:
            parser.error(f"no family {name!r}; there are: {'; '.join(FAMILIES)}")
    if chosen.workers < 1 or not chosen.comparisons >= 1 or chosen.seed < 0:
        parser.error("--workers and --comparisons must be at least 1, --seed at least 0")
    target = max(LEAST, math.ceil(chosen.comparisons / len(FAMILIES)))
    store = Store(chosen.out, source_hash())
    with store.alone():
        ended = run(store, families, target, chosen.seed, chosen.workers)
        records = [record for record in store.records(chosen.seed) if record.family in families]
        return _report(chosen, store, records, ended)


def _report(chosen: argparse.Namespace, store: Store, records: list[Record], ended: bool) -> int:
    command = " ".join(["python -m tools.campaign", *_told(chosen)])
    print(text(BY_FAMILY, by_family(records)))
    print()
    print(text(("certificate", "comparisons", "violations", "proven/found"), by_certificate(records)))
    if chosen.docs and ended:
        write_docs(Path("docs/campaign.md"), records, command)
    cases = write_cases(store.folder / "violations", records)
    for case in cases:
        print(f"violation: {case}  (python -m tools.campaign --reproduce '{case}')")
    errors = [(record, error) for record in records for error in record.errors]
    for record, error in errors[:20]:
        where = f"{record.family}, seed {record.seed}, chunk {record.chunk}, net {error['net']}"
        print(f"error: {where}, {error['certificate']}, l{error['norm']:g}: {error['error']}")
    if not ended:
        print(f"Ended by Ctrl-C; all finished chunks are kept. Go on with: {command}", file=sys.stderr)
        return 130
    return 1 if cases or errors else 0


def _told(chosen: argparse.Namespace) -> list[str]:
    words = [f"--comparisons {chosen.comparisons:g}", f"--seed {chosen.seed}"]
    words += [f'--family "{name}"' for name in chosen.family or []]
    return words if chosen.out == Path("out/campaign") else [*words, f"--out {chosen.out}"]


if __name__ == "__main__":
    sys.exit(main())
