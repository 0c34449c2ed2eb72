"""Threads of the libraries that compute: as many as the process may use cores, and none that spins for long.

Threads that share a product wait for each other at its end. OpenMP lets them spin there for some milliseconds, which
wins nothing and, where other programs use the cores, keeps the thread that is waited for from running: the flow at
the published size then took ten times as long. A bounded spin loses nothing when the machine is quiet.

`prepare` is for programs: the command line, workers of sweeps, benchmarks, tools. OpenMP reads its environment once,
when torch is loaded, so it comes before that. Importing polyrelu changes nothing; whoever uses it as a library calls
`prepare` first, or sets the same variables.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

SPINS = "2000"  # rounds that a thread waits awake, some 100 microseconds: GCC's OpenMP, which torch brings along
MILLISECONDS = "1"  # the same for LLVM's and Intel's OpenMP, whose unit it is


def prepare() -> dict[str, str]:
    """Set what OpenMP reads when torch is loaded, unless it is set already; what was set now.

    OMP_NUM_THREADS : `cores`, whatever else runs there now, so that results do not depend on it
    GOMP_SPINCOUNT, KMP_BLOCKTIME : how long a thread spins; left alone if OMP_WAIT_POLICY says it
    """
    wanted = {"OMP_NUM_THREADS": str(cores())}
    if "OMP_WAIT_POLICY" not in os.environ:
        wanted |= {"GOMP_SPINCOUNT": SPINS, "KMP_BLOCKTIME": MILLISECONDS}
    missing = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(missing)
    return missing


def cores() -> int:
    """Cores this process may use: those of its affinity, at most the whole ones of its quota; at least one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = quota()
    return allowed if share is None else max(1, min(allowed, int(share)))


def quota(root: Path = Path("/")) -> float | None:
    """Cores that control groups (Linux, version 1 and 2) let this process use on average; None where none limits it.

    A limit holds for every group inside, so the least one from the process's own group up to the mount counts.
    """
    limits = [_limit(group) for group in _groups(root)]
    return min((limit for limit in limits if limit is not None), default=None)


def _groups(root: Path) -> list[Path]:
    """The folders of the groups this process is in, from its own to the outermost that can be seen."""
    mounts, memberships = _lines(root / "proc/self/mountinfo"), _lines(root / "proc/self/cgroup")
    paths = {}  # of this process's group in the hierarchy of version 2 and in the one of version 1 that limits cores
    for line in memberships:
        _, controllers, path = [*line.split(":", 2), "", "", ""][:3]
        if path and (controllers == "" or "cpu" in controllers.split(",")):
            paths["cgroup" if controllers else "cgroup2"] = path
    found = []
    for line in mounts:  # a line may be short: the source of a mount may have no name
        before, _, after = line.partition(" - ")
        top, mount = [*map(_plain, before.split(" ")), *[""] * 5][3:5]
        kind, _, options = [*after.split(" "), "", "", ""][:3]
        if kind not in paths or (kind == "cgroup" and "cpu" not in options.split(",")):
            continue
        outermost = root / mount.lstrip("/")
        inside = Path(paths[kind]).relative_to(top) if Path(paths[kind]).is_relative_to(top) else Path()
        own = outermost / inside
        found += [own, *(parent for parent in own.parents if parent.is_relative_to(outermost))]
    return found


def _lines(path: Path) -> list[str]:
    """The lines of a file of the kernel, names in any encoding; none where it is not Linux."""
    try:
        return os.fsdecode(path.read_bytes()).splitlines()
    except OSError:
        return []


def _plain(name: str) -> str:
    r"""A path in mountinfo, in which space, tab, newline and backslash are written \040, \011, \012, \134."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), name)


def _limit(group: Path) -> float | None:
    """Cores of one group, quota / period."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
