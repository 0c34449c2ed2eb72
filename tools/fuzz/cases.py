"""A case by its name, ``KIND:SEED``: the same name is the same damage or the same call, on any machine."""

from __future__ import annotations

import json
import os
import shutil
import stat
import traceback
import warnings
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
    try:
        return _judge(case, kind, source, folder, seeds)
    except ToolError as error:
        return Outcome(case, "tool", "the case could not be made", str(error))


class ToolError(Exception):
    """A case could not be made: an error of this tool, not of what it looks at."""


def _judge(case: str, kind: str, source: Random, folder: Path, seeds: Path) -> Outcome:
    chosen = file_kinds().get(kind)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd values are odd to make
            if chosen is None:
                words, action = calls.prepared(kind, source, folder)
            else:
                made = {"recipe": _recipe, "request": _request}.get(kind)
                words, action = made(source) if made else _file(chosen, source, folder, seeds)
    except Exception:
        raise ToolError(traceback.format_exc()) from None
    return judged(
        case,
        words,
        action,
        folder,
        starts=bool(chosen and chosen.starts),
        sized=chosen is not None and bool(chosen.files),
    )


def _recipe(source: Random) -> tuple[str, Callable[[], Any]]:
    from polyrelu import data

    text = texts.odd_recipe(RECIPES[source.integers(len(RECIPES))], source)
    return f"read {text[:100]!r}", lambda: next(iter(data.read(text).blocks()))


def _request(source: Random) -> tuple[str, Callable[[], Any]]:
    from tools.fuzz.page import POINT, SETTING, request

    path = ("/flow", "/point", "/export")[source.integers(3)]
    messages: dict[str, dict[str, Any]] = {
        "/flow": {"setting": SETTING},
        "/point": POINT,
        "/export": {"recorded": [{"kind": "start"}]},
    }
    text = texts.odd_json_text(json.dumps({"tab": "a", **messages[path]}), source)
    body = text.encode("utf-8", "surrogatepass")
    body = body if source.random() < 0.8 else damage.BYTES[source.integers(len(damage.BYTES))](body, source)
    return f"{path} {body[:100]!r}", lambda: request(path, body)


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


def _npy(path: Path, source: Random, code: str) -> None:
    path.write_bytes(arrays.damage_npy(path.read_bytes(), source, code))


def _text(change: Callable[[str, Random], str | bytes]) -> Callable[[Path, Random, str], None]:
    def write(path: Path, source: Random, code: str) -> None:
        changed = change(path.read_text(encoding="utf-8"), source)
        path.write_bytes(changed if isinstance(changed, bytes) else changed.encode("utf-8", "surrogatepass"))

    return write


FORMATS: dict[str, Callable[[Path, Random, str], None]] = {
    ".npz": arrays.damage_npz,
    ".npy": _npy,
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
