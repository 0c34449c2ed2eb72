"""Damage to files of text that knows how they are built: JSON, TOML, CSV, recipes."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

Random = np.random.Generator
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 10**6, 10**12, 10**30, -(10**30), 0.5, 1e308, 1e-320, math.nan, math.inf,
    -math.inf, "",
    "a", "2", "nan", "\0", "x" * 2000, "é", "\ud800", [], [1], [[1]], [None], ["a"], {}, {"a": 1}, {"": None},
    "float32", "cpu",
    "__import__('os')", "../../x", "<script>", "2020-01-01", [1, "a"], {"$float": "x"}, {"$float": []}, [[]] * 40,
)  # fmt: skip
CELLS = ("", " ", "nan", "inf", "-inf", "1e999", "abc", "1,2", '"', '""', "'", "0x1f", "1_000", "١", "None", "true",
         "1e-320",
         "9" * 400, "x" * 140_000, "=1+1", "-", "+", ".", "1.2.3", "\t", "NaN", "#", "2020-01-01", "½", "\u2028",
         "1j")  # fmt: skip
LINES = ("p = [", "[grid]", "[fixed]", 'function = "os:system"', "function = 3", "p = nan", "p = [[1]]",
         "a.b.c = 1", "seed = -1",
         "[[settings]]", "[settings]", 'x = """', "p = 2020-01-01", "p = 99999999999999999999999", "p = [1e400]",
         "p = {a = 1}")  # fmt: skip


def odd_json(value: Any, source: Random) -> Any:
    """The same with one place changed: another value, a key less, a key more, two values swapped."""
    places = list(_places(value))
    if not places:
        return VALUES[source.integers(len(VALUES))]
    holder, key = places[source.integers(len(places))]
    way = source.random()
    if way < 0.6:
        holder[key] = VALUES[source.integers(len(VALUES))]
    elif way < 0.75:
        del holder[key]
    elif way < 0.85 and isinstance(holder, dict):
        holder[str(VALUES[source.integers(len(VALUES))])[:50]] = holder.pop(key)
    elif way < 0.95:
        there, other = places[source.integers(len(places))]
        if isinstance(there, dict) is isinstance(holder, dict) and there is holder:
            holder[key], there[other] = there[other], holder[key]
        else:
            holder[key] = json.loads(json.dumps(there[other]))
    else:
        for _ in range(3000):
            value = [value]
    return value


def odd_json_text(text: str, source: Random) -> str:
    """JSON with a place changed, or text that only looks like it."""
    if source.random() < 0.15:
        ways = (text[:-1], text + "}", text.replace(":", "", 1), text.replace('"', "'"), "NaN", "[" * 50_000,
                "9" * 5000, "",
                text.replace("{", '{"a":1,"a":2,', 1), text.replace("1", "1e999"),
                text.replace("0", "Infinity", 1))  # fmt: skip
        return ways[source.integers(len(ways))]
    content = odd_json(json.loads(text), source)
    if isinstance(content, dict) and "check" in content and source.random() < 0.8:
        content["check"] = _digest(content)
    try:
        return json.dumps(content)
    except (ValueError, RecursionError):
        return "[" * 3000 + "]" * 3000


def _digest(content: dict[str, Any]) -> str:
    """What a folder of a sweep writes beside its content, so that changed content counts as whole."""
    rest = {key: value for key, value in content.items() if key not in ("format", "check")}
    try:
        canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return ""
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _places(value: Any) -> Any:
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def odd_toml(text: str, source: Random) -> str:
    """A line more, less, twice or changed."""
    lines = text.splitlines() or [""]
    place = int(source.integers(len(lines)))
    way = source.random()
    if way < 0.5:
        lines.insert(place, LINES[source.integers(len(LINES))])
    elif way < 0.65:
        del lines[place]
    elif way < 0.75:
        lines.insert(place, lines[place])
    else:
        key, _, _ = lines[place].partition("=")
        value = VALUES[source.integers(len(VALUES))]
        lines[place] = f"{key} = {json.dumps(value) if not isinstance(value, float) else value}"
    return "\n".join(lines)


def odd_csv(text: str, source: Random) -> str | bytes:
    """A cell, a line, the header, the separator or the encoding changes."""
    rows = [line.split(",") for line in text.splitlines()]
    way = int(source.integers(12))
    row = int(source.integers(len(rows)))
    column = int(source.integers(len(rows[row])))
    if way < 4:
        rows[row][column] = CELLS[source.integers(len(CELLS))]
    elif way == 4:
        del rows[row][column]
    elif way == 5:
        rows[0] = [CELLS[i] for i in source.integers(len(CELLS), size=len(rows[0]))]
    elif way == 6:
        for line in rows:
            line[min(column, len(line) - 1)] = CELLS[source.integers(len(CELLS))]
    elif way == 7:
        rows = rows[: int(source.integers(0, 3))]
    elif way == 8:
        rows[0] = [rows[0][0]] * len(rows[0])
    joined = "\n".join(",".join(line) for line in rows) + "\n"
    if way == 9:
        return joined.replace(",", (";", "\t", " ", "|", ",,", '","')[source.integers(6)])
    if way == 10:
        return joined.encode(("utf-16", "utf-32", "cp1252", "utf-8-sig", "utf-7")[source.integers(5)], "replace")
    if way == 11:
        return joined.replace("\n", ("\r", "\r\n", "\0\n", "\n\n", "", "\x85", "\n#\n")[source.integers(7)])
    return joined


def odd_recipe(text: str, source: Random) -> str:
    """A recipe or a name with a key or value changed."""
    way = source.random()
    if way < 0.6 and "=" in text:
        words = text.split(",")
        place = int(source.integers(len(words)))
        key, _, _ = words[place].partition("=")
        value = VALUES[source.integers(len(VALUES))]
        words[place] = f"{key}={value}"[:3000]
        return ",".join(words)
    letters = list(text)
    for _ in range(int(source.integers(1, 4))):
        place = int(source.integers(len(letters) + 1))
        letters[place : place + int(source.integers(2))] = [
            (",", "=", ":", "9", "-", "é", "\0", "+", " ", "e", "/")[source.integers(11)]
        ]
    return "".join(letters)
