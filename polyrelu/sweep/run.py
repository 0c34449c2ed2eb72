"""Run a sweep: only what is missing, one file per setting, until everything asked for is there or has failed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from polyrelu.checks import checked
from polyrelu.errors import InputError, nearest, require
from polyrelu.files import writing
from polyrelu.interrupt import Patience
from polyrelu.progress import Progress
from polyrelu.sweep.engines import local, ray_engine
from polyrelu.sweep.engines.ray_address import probe_address
from polyrelu.sweep.folder import Folder, locked_folder
from polyrelu.sweep.function import find_function, source_version
from polyrelu.sweep.record import EngineResult, FunctionVersion, Record, encode
from polyrelu.sweep.sweep import Sweep, check_call, check_time_limit
from polyrelu.threads import cores

ENGINES = ("local", "ray")


@checked
def run_sweep(
    sweep: Sweep,
    out: str | Path,
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    retry_failed: bool = False,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """A record for every setting, in their order; settings that are done in the folder ``out`` are not run again.

    Parameters
    ----------
    engine : "local" (processes here) or "ray"
    workers : how many at once; one for each core by default (with an address: what the cluster has)
    address : of a Ray cluster, "host:port", "ray://host:port" or "auto"; without one a local Ray is started
    retry_failed : try failed settings again; a setting whose worker dies is tried three times in any case
    time_limit : seconds one setting may take, that of the sweep by default; it is ended then and counts as failed, the
        others go on. It is tried again when there is more time, or none of it is limited
    progress : told of every setting, and several times a second

    Ctrl-C lets the settings under way finish, keeps them and raises KeyboardInterrupt; a second one, a second later,
    kills the workers.
    """
    require(engine in ENGINES, "engine", engine, f"local or ray{nearest(str(engine), ENGINES)}")
    require(address is None or engine == "ray", "address", address, "none: only the engine ray has an address")
    if address is not None:
        probe_address(address)  # before anything is loaded or written
    size = cores() if workers is None else workers
    require(isinstance(size, int) and size >= 1, "workers", workers, "a whole number >= 1")
    limit = sweep.time_limit if time_limit is None else time_limit
    check_time_limit(limit)
    progress = progress or Progress()
    check_call(sweep)
    function = FunctionVersion(sweep.function, source_version(find_function(sweep.function)))
    with locked_folder(out, function) as folder:
        wanted = {folder.key(settings): settings for settings in sweep.settings}
        before = {
            record.key: record for record in folder.records(wanted)
            if not (record.failed and (retry_failed or record.worth_another_try(limit)))
        }  # fmt: skip
        failed = sum(record.failed for record in before.values())
        with writing(out, _kept(len(before) - failed, len(wanted))):
            folder.write_sweep(sweep.settings)
        progress.stage("settings", len(wanted), len(before) - failed, failed)
        missing = {key: settings for key, settings in wanted.items() if key not in before}
        tasks = {key: encode(settings) for key, settings in missing.items()}

        def work(progress: Progress, more: Callable[[], bool]) -> Iterator[EngineResult]:
            if engine == "local":
                return local.work(function, tasks, size, progress, more, limit)
            most = workers if address else size
            return ray_engine.work(function, tasks, most, address, progress, more, limit)

        found = {**before, **_run(folder, work, missing, progress, len(before) - failed, len(wanted))}
        return [found[folder.key(settings)] for settings in sweep.settings]


Work = Callable[[Progress, Callable[[], bool]], Iterator[EngineResult]]


def _run(
    folder: Folder, work: Work, missing: Mapping[str, Mapping[str, Any]], progress: Progress, done: int, total: int
) -> dict[str, Record]:
    """Run what is missing and keep every result as it comes."""
    found: dict[str, Record] = {}
    if not missing:
        return found
    with Patience() as patience:

        def more() -> bool:
            try:
                progress.update()
            except KeyboardInterrupt:
                patience.asked = patience.asked or time.monotonic()
            return patience.asked is None

        with contextlib.closing(work(progress, more)) as results:  # type: ignore[type-var]
            for result in results:
                with writing(folder.path, _kept(done, total)):
                    record = folder.write_result(result, missing[result.key])
                found[result.key] = record
                done += not record.failed
                progress.finished(record)
    if len(found) < len(missing):
        if patience.asked is None:
            raise InputError(f"out={folder.path}: {len(missing) - len(found)} settings were not run.")
        raise KeyboardInterrupt
    return found


def _kept(done: int, total: int) -> str:
    return f"{done} of {total} settings are done and kept"
