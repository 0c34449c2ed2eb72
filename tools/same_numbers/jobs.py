"""What is compared: training, brackets, heads, claims; fixed seeds. Run in each tree: ``python jobs.py NAME THREADS``.

Only the top-level names of polyrelu and its command line are used, so that trees of different layouts can be compared.
A job works in the current folder, an empty one, and prints one JSON object in which floating numbers stand as
hexadecimal text, so equal text means equal bits.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLAIMS = ("A3", "A6", "A9", "B2", "B7", "B9", "C1", "C6", "D1", "D6", "E1", "E11", "E19", "I4", "I13")
NOT_NUMBERS = ("seconds", "versions", "file", "command", "created", "version", "code", "files", "commit", "results")


def digest(values: Any) -> str:
    """A short hash of the bits of a tensor or an array."""
    import numpy as np

    array = np.ascontiguousarray(values.detach().numpy() if hasattr(values, "detach") else values)
    return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


def flow() -> dict[str, Any]:
    """Nets, losses and histories of gradient flows: p = 1 and 3, both losses, on data and past separation."""
    import polyrelu

    found: dict[str, Any] = {}
    for p, loss, until in ((1, "exp", 1e-2), (3, "exp", 1e-2), (3, "logistic", 1e-4), (1, "exp", 1e-30)):
        mixture = polyrelu.OrthonormalMixture(dim=60, positive=3, negative=2, alpha=0.1)
        data = mixture.sample(400, seed=0)
        net = polyrelu.PolyReLUNet(dim=60, width=80, p=p, init="balanced", scale=1e-5, seed=0)
        out = polyrelu.flow(net, data, loss=loss, until=until)
        weights = {name: digest(value) for name, value in out.net.state_dict().items()}
        found[f"p={p} {loss} {until}"] = {
            "weights": weights,
            "log_loss": float(out.log_loss).hex(),
            "evaluations": out.evaluations,
            "times": digest(out.history.log_time),
        }
    return found


def bracket() -> dict[str, Any]:
    """Both bounds of ten points: collapsed and wide nets, all norms and arithmetics, several powers."""
    import polyrelu

    mixture = polyrelu.OrthonormalMixture(dim=40, positive=3, negative=2, alpha=0.1)
    train, test = mixture.sample(300, seed=0), mixture.sample(10, seed=1)
    found: dict[str, Any] = {}
    for p in (1, 2, 2.5, 3):
        net = polyrelu.PolyReLUNet(dim=40, width=40, p=p, init="balanced", scale=1e-4, seed=0)
        trained = polyrelu.flow(net, train, until=1e-2).net
        wide = polyrelu.PolyReLUNet(dim=40, width=60, p=p, seed=3)
        for name, one, norm, arithmetic in (
            ("trained", trained, 2, "real"),
            ("trained", trained, 2, "float32"),
            ("trained", trained, 1, "real"),
            ("trained", trained, float("inf"), "real"),
            ("wide", wide, 2, "real"),
        ):
            budget = polyrelu.Budget(nodes=200)
            bounds = polyrelu.bracket(one, test.rows(), test.y, norm=norm, arithmetic=arithmetic, budget=budget)
            found[f"{name} p={p} l{norm} {arithmetic}"] = {
                "lower": [float(value).hex() for value in bounds.lower],
                "upper": [float(value).hex() for value in bounds.upper],
                "perturbation": digest(bounds.perturbation),
            }
    return found


def head() -> dict[str, Any]:
    """Heads for rows with hidden sub-classes: weights, decisions, certified radii and scores."""
    import numpy as np

    import polyrelu

    data = polyrelu.OrthonormalMixture(dim=20, positive=3, negative=3, alpha=0.3).sample(240, seed=1)
    X, fine = data.rows().double().numpy() * 7 + 1, np.asarray(data.cluster)
    found: dict[str, Any] = {}
    settings: dict[str, Any]
    for name, y, settings, labels in (
        ("two classes", fine // 3, {"p": 3}, None),
        ("three classes", fine % 3, {"p": 3}, None),
        ("sub-classes", fine // 3, {"p": 3}, fine),
        ("ReLU", fine // 3, {"p": 1}, None),
        ("auto", fine // 3, {"p": "auto"}, None),
    ):
        model = polyrelu.PolyReLUClassifier(width=24, epochs=60, random_state=0, **settings)
        model.fit(X[:180], y[:180], fine_labels=None if labels is None else labels[:180])
        bounds = model.certify(X[180:200], pool=(X[:180], y[:180]), budget=polyrelu.Budget(nodes=4))
        found[name] = {
            "weights": {key: digest(value) for key, value in model.net_.state_dict().items()},
            "decisions": digest(model.decision_function(X[180:])),
            "lower": digest(bounds.lower),
            "upper": digest(bounds.upper),
            "score": float(model.robust_score(X[180:], y[180:], 1.0)).hex(),
        }
    return found


def report() -> dict[str, Any]:
    """A diagnosis of a foreign classifier and of a head."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    import polyrelu

    data = polyrelu.OrthonormalMixture(dim=15, positive=3, negative=2, alpha=0.3).sample(200, seed=2)
    X, y = data.rows().double().numpy(), (data.y > 0).numpy().astype(np.int64)
    found = {}
    for name, model in (
        ("logistic", LogisticRegression().fit(X, y)),
        ("head", polyrelu.PolyReLUClassifier(p=3, width=16, epochs=40, random_state=0).fit(X, y)),
    ):
        model_report = report_of(polyrelu, model, X[:30], y[:30])
        found[name] = plain(model_report.record())
    return found


def report_of(polyrelu: Any, model: Any, X: Any, y: Any) -> Any:
    """The report by either way of making one: measured in the constructor, or by a method."""
    kind = polyrelu.RobustnessReport
    return kind.measure(model, X, y, seed=0) if hasattr(kind, "measure") else kind(model, X, y, seed=0)


def claims() -> dict[str, Any]:
    """The verdicts and judged numbers of a dozen claims at quick size, one seed."""
    return judged(*CLAIMS)


def all_claims() -> dict[str, Any]:
    """The same of every claim."""
    return judged()


def judged(*names: str) -> dict[str, Any]:
    """Verdicts, measured numbers and bounds, in the order of the checks; the names of numbers may be others."""
    words = [sys.executable, "-m", "polyrelu", "claims", "run", *names, "--seeds", "1", "--json", "--quiet"]
    done = subprocess.run([*words, "--out", "claims", "--workers", "1"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-2000:])
    return {
        one["id"]: {
            "verdict": one["verdict"],
            "numbers": [[row[key] for key in ("values", "low", "high", "published")] for row in one["numbers"]],
        }
        for one in json.loads(done.stdout)["claims"]
    }


def inspect() -> dict[str, Any]:
    """Everything `polyrelu inspect` measures of a small run."""
    data = "mixture:dim=30,clusters=3+2,alpha=0.1,n=200,seed=0"
    sizes = ["--dim", "30", "--clusters", "3+2", "--samples", "200", "--width", "40"]
    for words in (
        ["flow", *sizes, "--p", "3", "--until-loss", "1e-2", "--quiet", "--out", "run"],
        ["inspect", "run", data, "--out", "seen", "--quiet"],
    ):
        done = subprocess.run([sys.executable, "-m", "polyrelu", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:] + done.stdout[-2000:])
    return {"rows": plain(json.loads(Path("seen/inspection.json").read_text()))}


def plain(value: Any) -> Any:
    """Numbers as hexadecimal text; without times, files and versions."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items() if key not in NOT_NUMBERS}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.hex() if isinstance(value, float) else value


JOBS: dict[str, Callable[[], dict[str, Any]]] = {
    one.__name__: one for one in (flow, bracket, head, report, inspect, claims, all_claims)
}

if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[2]))
    sys.stdout.write(json.dumps(plain(JOBS[sys.argv[1]]()), sort_keys=True))
