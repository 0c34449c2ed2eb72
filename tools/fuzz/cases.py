"""A case by its name, ``KIND:SEED``: the same name is the same damage or the same call, on any machine."""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz import arrays, calls, damage, objects, texts
from tools.fuzz.judge import CANARY, Outcome, canary, judged
from tools.fuzz.readers import Kind, kinds
from tools.fuzz.seeds import RECIPES

Random = np.random.Generator
PLACE, BYTES = 0.08, 0.45  # shares of cases: another thing in the file's place; bytes changed blindly; else by format


@cache
def file_kinds() -> dict[str, Kind]:
    """Every kind of file."""
    return kinds()


def judge(case: str, folder: Path, seeds: Path) -> Outcome:
    """Run one case in ``folder``, which is emptied first; ``seeds`` holds the whole files."""
    kind, _, number = case.rpartition(":")
    source = np.random.default_rng([int(number), zlib.crc32(kind.encode())])
    _empty(folder)
    os.chdir(folder)
    if kind in file_kinds():
        chosen = file_kinds()[kind]
        words, action = _recipe(source) if kind == "recipe" else _file(chosen, source, folder, seeds)
        return judged(case, words, action, folder, starts=chosen.starts, sized=True)
    words, action = calls.prepared(kind, source, folder)
    return judged(case, words, action, folder, sized=False)


def _recipe(source: Random) -> tuple[str, Callable[[], Any]]:
    from polyrelu import data

    text = texts.odd_recipe(RECIPES[source.integers(len(RECIPES))], source)
    return f"read {text[:100]!r}", lambda: next(iter(data.read(text).blocks()))


def _file(kind: Kind, source: Random, folder: Path, seeds: Path) -> tuple[str, Callable[[], Any]]:
    shutil.copytree(seeds / kind.seed, folder, dirs_exist_ok=True)
    files = sorted(path for pattern in kind.files for path in folder.glob(pattern) if path.is_file())
    path = files[source.integers(len(files))]
    done = _damage(path, source, canary(folder))
    number = int(source.integers(len(kind.readers)))
    return f"{path.relative_to(folder)}: {done}; reader {number}", lambda: kind.readers[number](folder)


def _damage(path: Path, source: Random, code: str) -> str:
    drawn = source.random()
    if path.name.startswith("bomb"):
        return "as it is"
    if drawn < PLACE:
        return damage.damage_place(path, source)
    suffix = path.suffix.lower()
    if drawn < PLACE + BYTES or suffix not in FORMATS:
        return damage.damage_bytes(path, source)
    FORMATS[suffix](path, source, code)
    return f"as {suffix[1:]}"


def _text(change: Callable[[str, Random], str | bytes]) -> Callable[[Path, Random, str], None]:
    def write(path: Path, source: Random, code: str) -> None:
        changed = change(path.read_text(encoding="utf-8"), source)
        path.write_bytes(changed if isinstance(changed, bytes) else changed.encode("utf-8", "surrogatepass"))

    return write


FORMATS: dict[str, Callable[[Path, Random, str], None]] = {
    ".npz": arrays.damage_npz,
    ".npy": lambda path, source, code: path.write_bytes(arrays.damage_npy(path.read_bytes(), source, code)) and None,
    ".safetensors": lambda path, source, code: arrays.damage_safetensors(path, source),
    ".json": _text(texts.odd_json_text),
    ".toml": _text(texts.odd_toml),
    ".csv": _text(texts.odd_csv),
    ".parquet": lambda path, source, code: objects.damage_parquet(path, source),
    ".pt": objects.damage_checkpoint,
    ".pth": objects.damage_checkpoint,
    ".whl": objects.damage_wheel,
    ".tgz": lambda path, source, code: objects.damage_tar(path, source),
    ".png": lambda path, source, code: objects.damage_png(path, source),
}


def _empty(folder: Path) -> None:
    """Nothing of the case before is left; what stands there may be links, pipes and folders."""
    os.chdir(folder.parent)
    for one in folder.iterdir() if folder.is_dir() else ():
        if stat.S_ISDIR(one.lstat().st_mode):
            shutil.rmtree(one)
        else:
            one.unlink()
    folder.mkdir(exist_ok=True)
    assert not (folder / CANARY).exists()
