"""python -m tools.mutants: plant errors by rule, one at a time, and list those that no test notices."""

from __future__ import annotations

import argparse
import math
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tools.mutants.locate import ROOT, Mutant, digest, mutants_of, source, tests_of
from tools.mutants.record import Kept, Outcome, report
from tools.mutants.run import Job, Result, copies, preload, run
from tools.mutants.targets import TARGETS, Target

PATIENCE = 5.0  # times the processor time without a mutant, and half a minute, that tests may take with one


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--target", action="append", metavar="NAME", help="only this one; may be given several times")
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants drawn at random from all of them")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time (2)")
    parser.add_argument("--longest", type=float, default=60.0, help="leave out test files that take longer (60 s)")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants", help="where results are kept")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--list", action="store_true", help="say what would be planted, and plant nothing")
    asked = parser.parse_args()
    known = {target.subject: target for target in TARGETS}
    for name in asked.target or ():
        if name not in known:
            parser.error(f"--target {name}: expected one of {', '.join(known)}")
    targets = [known[name] for name in asked.target or known]
    everything = [mutant for target in targets for mutant in mutants_of(target)]
    chosen = everything
    if asked.sample is not None and asked.sample < len(everything):
        chosen = random.Random(asked.seed).sample(everything, asked.sample)
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.file}:{mutant.edit.line} {' | '.join(mutant.place)}")
        print(f"{len(chosen)} of {len(everything)} mutants")
        return 0
    kept = Kept(asked.out / "results.jsonl", asked.fresh)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell started it in the background
        signal.signal(number, signal.default_int_handler)
    preload()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        slots = copies(Path(folder), asked.workers)
        done: dict[Mutant, Outcome] = {}
        try:
            times = _unmutated(targets, slots)
            planted = Planted(targets, chosen, times, asked.longest, kept)
            done = planted.known
            planted.run(slots)
        except KeyboardInterrupt:
            print("\nStopped; what is done is kept, the same command goes on.", file=sys.stderr)
    done = {mutant: done[mutant] for mutant in chosen if mutant in done}
    unexplained = report(done, everything, [target.subject for target in targets])
    if len(done) < len(chosen):
        print(f"{len(chosen) - len(done)} of {len(chosen)} mutants were not tried.")
        return 130
    return 1 if unexplained else 0


def _unmutated(targets: list[Target], slots: list[Path]) -> dict[str, float]:
    """Seconds of processor time of every test file as things are; inf for one that fails and can notice nothing."""
    files = sorted({file for target in targets for file in tests_of(target)})
    waiting, times = list(files), dict[str, float]()

    def following() -> Job | None:
        return Job(None, [waiting.pop(0)], 1800.0) if waiting else None

    for result in run(following, slots):
        file = result.job.tests[0]
        times[file] = math.inf if result.noticed else result.seconds
        print(f"{result.seconds:6.1f} s  {file}" + f"  FAILS as things are: {result.by}" * result.noticed, flush=True)
    return times


class Planted:
    """The mutants to be tried, the tests of each, and what is known so far."""

    def __init__(
        self, targets: list[Target], chosen: list[Mutant], times: dict[str, float], longest: float, kept: Kept
    ) -> None:
        """``times`` of the test files, ``longest`` that may be run."""
        self.times, self.kept = times, kept
        self.tests = {
            target.subject: sorted((file for file in tests_of(target) if times[file] <= longest), key=times.__getitem__)
            for target in targets
        }
        for target in targets:
            for file in sorted(set(tests_of(target)) - set(self.tests[target.subject])):
                print(f"{target.subject}: {file} fails, or takes longer than --longest, and is left out")
            if not self.tests[target.subject]:
                raise SystemExit(f"{target.subject}: there is no test left that could notice")
        self.known = {
            mutant: outcome
            for mutant in chosen
            if (outcome := kept.outcomes.get(mutant.key)) is not None and outcome.holds(self.tests[mutant.target])
        }
        self.waiting = [mutant for mutant in chosen if mutant not in self.known]
        self.noticed: dict[tuple[str, str], int] = {}
        self.total = len(chosen)

    def run(self, slots: list[Path]) -> None:
        """Try them all."""
        began, before = time.monotonic(), len(self.known)
        for result in run(self._following, slots):
            self._keep(result)
            done = len(self.known)
            left = (time.monotonic() - began) / (done - before) * (self.total - done)
            mark = "noticed" if result.noticed else "SURVIVED"
            place = " | ".join(result.job.name.place[:3])
            print(
                f"[{done}/{self.total}, {left / 60:.0f} min left] {mark} {place[:150]}  {result.by[-70:]}", flush=True
            )

    def _following(self) -> Job | None:
        if not self.waiting:
            return None
        mutant = self.waiting.pop(0)
        tests = sorted(self.tests[mutant.target], key=lambda file: self._worth(mutant.target, file), reverse=True)
        limit = 30 + PATIENCE * sum(self.times[file] for file in tests)
        content = mutant.edit.applied(source(mutant.file))
        return Job(mutant, tests, limit, mutant.file, content)

    def _worth(self, target: str, file: str) -> float:
        """Mutants noticed so far for each second the file takes."""
        return (self.noticed.get((target, file), 0) + 0.5) / max(self.times[file], 0.1)

    def _keep(self, result: Result) -> None:
        mutant: Mutant = result.job.name
        tests = {file: digest(file) for file in result.job.tests}
        outcome = Outcome(mutant.key, result.noticed, result.by if result.noticed else "", result.seconds, tests)
        self.known[mutant] = outcome
        self.kept.add(outcome)
        file = result.by.split("::")[0]
        self.noticed[mutant.target, file] = self.noticed.get((mutant.target, file), 0) + result.noticed


if __name__ == "__main__":
    raise SystemExit(main())
