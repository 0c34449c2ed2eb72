"""What is kept between runs, the list of equivalent mutants, and the table at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.mutants.locate import ROOT, Mutant, digest
from tools.mutants.run import LATE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
ANY = "*"


@dataclass(frozen=True)
class Outcome:
    """What came of one mutant, and what that rests on: the test that noticed, or all the tests that did not."""

    key: str
    noticed: bool
    by: str
    seconds: float
    tests: dict[str, str]  # file -> hash

    def holds(self, wanted: Iterable[str]) -> bool:
        """Still true: the test that noticed is as it was, or none of those wanted is new."""
        names = [self.by.split("::")[0]] if self.noticed and "::" in self.by else list(wanted)
        return all((ROOT / name).is_file() and self.tests.get(name) == digest(name) for name in names)


class Kept:
    """Outcomes in a file, one line each, written as they come."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self.path, self.outcomes = path, dict[str, Outcome]()
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                outcome = Outcome(**json.loads(line))
                self.outcomes[outcome.key] = outcome

    def add(self, outcome: Outcome) -> None:
        """Keep it."""
        self.outcomes[outcome.key] = outcome
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(outcome)) + "\n")


@dataclass(frozen=True)
class Reason:
    """Why a mutant, or all of a rule or of a function, changes nothing that a test could notice."""

    function: str
    rule: str
    before: str
    after: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        """Is it about this one?"""
        mine = (self.function, self.rule, self.before, self.after)
        return all(one in (ANY, other) for one, other in zip(mine, mutant.place, strict=True))


def reasons() -> list[Reason]:
    """The list of equivalent mutants."""
    found = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    return [
        Reason(
            one["function"], one.get("rule", ANY), one.get("before", ANY), one.get("after", ANY), one["reason"].strip()
        )
        for one in found
    ]


def report(outcomes: dict[Mutant, Outcome], everything: list[Mutant], targets: list[str]) -> int:
    """Print survivors and the table; the number of survivors nobody has explained."""
    known = reasons()
    unexplained = 0
    rows: dict[str, list[int]] = {target: [0, 0, 0, 0, 0] for target in targets}
    for mutant, outcome in outcomes.items():
        row = rows[mutant.target]
        row[0] += 1
        row[1] += outcome.noticed
        row[4] += outcome.by == LATE
        if outcome.noticed:
            continue
        reason = next((one for one in known if one.covers(mutant)), None)
        row[2 if reason else 3] += 1
        if reason is None:
            unexplained += 1
            function, rule, before, after = mutant.place
            print(f"survived  {function} ({mutant.file}:{mutant.edit.line})\n  {rule}: {before}  ->  {after}")
    late = [mutant for mutant, outcome in outcomes.items() if outcome.by == LATE]
    for mutant in late:
        print(f"noticed by the time limit only: {' | '.join(mutant.place)}")
    for one in (one for one in known if one.function.split(":")[0] in targets):
        about = f"{one.function} | {one.rule} | {one.before}"
        tried = [outcomes[mutant] for mutant in everything if one.covers(mutant) and mutant in outcomes]
        if not any(one.covers(mutant) for mutant in everything):
            print(f"stale reason, there is no such place: {about}")
        elif tried and all(outcome.noticed for outcome in tried):
            print(f"reason not needed, a test notices: {about}")
    print(f"\n{'target':22}{'planted':>9}{'noticed':>9}{'explained':>11}{'survived':>10}{'by time':>9}{'%':>7}")
    total = [sum(column) for column in zip(*rows.values(), strict=True)] if rows else [0] * 5
    for name, row in [*rows.items(), ("all", total)]:
        share = f"{100 * row[1] / row[0]:7.1f}" if row[0] else ""
        print(f"{name:22}{row[0]:9}{row[1]:9}{row[2]:11}{row[3]:10}{row[4]:9}{share}")
    return unexplained
