"""Records of chunks: appended whole, one line each, and counted only for the code that they were made with."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.campaign.chunk import Record
from tools.campaign.names import PACKAGE


def source_hash() -> str:
    """A hash of the source of every module that certificates, nets and this tool have loaded: what records speak of."""
    digest = hashlib.sha256()
    for name in sorted(sys.modules):
        file = getattr(sys.modules[name], "__file__", None)
        if name.split(".")[0] == PACKAGE or name.startswith("tools.campaign"):
            digest.update(name.encode() + Path(file).read_bytes() if file else b"")
    return digest.hexdigest()[:16]


class Store:
    """A folder with ``records.jsonl``; records of other code stay in it and are not counted."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder, self.source = folder, source
        self.file = folder / "records.jsonl"
        folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No second campaign writes here meanwhile."""
        with (self.folder / "lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SystemExit(
                    f"Another campaign is writing to {self.folder}; give another folder with --out."
                ) from None
            yield

    def records(self, seed: int) -> list[Record]:
        """What was recorded of this code and seed, each chunk once; a line cut short is left out."""
        found: dict[tuple[str, int], Record] = {}
        if self.file.exists():
            for line in self.file.read_text().splitlines():
                try:
                    row: dict[str, Any] = json.loads(line)
                    source = row.pop("source")
                    record = Record(**row)
                except (ValueError, KeyError, TypeError):
                    continue
                if source == self.source and record.seed == seed:
                    found[record.family, record.chunk] = record
        return list(found.values())

    def append(self, record: Record) -> None:
        """One line, in one write, on disk when this returns."""
        line = json.dumps({"source": self.source, **asdict(record)}) + "\n"
        handle = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":  # a line cut short ends here
                line = "\n" + line
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
