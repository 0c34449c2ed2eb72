"""A file for each violation: the net, the point, the perturbation, and how to make it again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import polyrelu
from polyrelu.nets import Net
from tools.campaign.chunk import Record, draw, run_chunk
from tools.campaign.exact import broken, exact_length
from tools.campaign.scores import Scores

KEYS = ("net", "point", "norm", "certificate")


def write_cases(folder: Path, records: Iterable[Record]) -> list[Path]:
    """A JSON file for each violation, beside the net as `polyrelu.load` reads it; written once."""
    cases = []
    for record in records:
        for violation in record.violations:
            words = [record.family, record.seed, record.chunk, *(violation[key] for key in KEYS)]
            name = "-".join(str(word).replace(" ", "_").replace(",", "") for word in words)
            case = folder / f"{name}.json"
            if not case.exists():
                folder.mkdir(parents=True, exist_ok=True)
                drawn = draw(record.family, record.seed, record.chunk, violation["net"])[0]
                net = getattr(drawn.net, "net_", drawn.net)
                if isinstance(net, Net):
                    polyrelu.save(net, folder / f"{name}.safetensors")
                stored = {key: _plain(value) for key, value in asdict(drawn.scores).items()}
                place = {"family": record.family, "seed": record.seed, "chunk": record.chunk}
                case.write_text(json.dumps({**place, **violation, "scores": stored}))
            cases.append(case)
    return cases


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def stored_scores(case: dict[str, Any]) -> Scores:
    """The classifier of a violation's file, without drawing it again."""
    whole: dict[str, Any] = {
        key: np.array(value) if isinstance(value, list) else value for key, value in case["scores"].items()
    }
    return Scores(**whole)


def reproduce(file: Path) -> int:
    """Is the perturbation a break still, and does the certificate still prove more? Status 1 if so."""
    case = json.loads(file.read_text())
    x, step = np.array(case["x"]), np.array(case["step"])
    breaks = broken(stored_scores(case), case["label"], x, step)
    size = exact_length(step, case["norm"])
    print(f"perturbation of length {float(size):.17g}: {'breaks' if breaks else 'does not break'} the label (exactly)")
    record = run_chunk(case["family"], case["seed"], case["chunk"], only=case["net"])
    again = [found for found in record.violations if all(found[key] == case[key] for key in KEYS)]
    for found in again:
        print(f"{found['certificate']} proves {found['proven']:.17g}, broken at {found['broken']:.17g}")
    if not again:
        print(f"{case['certificate']} proved {case['proven']:.17g} then; now it proves nothing that was broken")
    return 1 if again and breaks and size < math.inf else 0
