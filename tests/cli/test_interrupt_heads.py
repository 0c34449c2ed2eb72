"""Ctrl-C in `polyrelu fit` and `polyrelu predict`: what is trained and what is certified is kept."""

import shlex
import signal
import sys

import numpy as np
import pytest
import torch
from interrupting import AGAIN, NEW, Command, finished

import polyrelu
from polyrelu.estimator import PolyReLUClassifier
from polyrelu.nets import load_about

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(sys.platform == "win32", reason="needs Unix signals"),
]


def weights(path):
    return [value for _, value in sorted(polyrelu.load(path).state_dict().items())]


@pytest.mark.slow
def test_fit_keeps_the_head_of_the_whole_passes(made, tmp_path):
    """Held after the second of nine passes is told: what is kept is the head of `--epochs 2`, to the last bit."""
    run = Command(tmp_path, "fit", made / "rows.npz", "--width", 6, "--epochs", 9, "-o", "head.safetensors",
                  hold="polyrelu.cli.terminal:TerminalProgress.update:2").until("held")  # fmt: skip
    code, said = run.press().until(AGAIN).let_go().end()
    assert code == 130
    assert (
        "polyrelu: interrupted; the head after 2 whole passes is in head.safetensors, marked as stopped early and not "
        "measured. The same command trains it to the end." in said
    )
    kept = tmp_path / "head.safetensors"
    assert load_about(kept)["stopped_after_passes"] == 2
    assert load_about(kept)["median_centred_norm"] > 0
    finished(tmp_path, "fit", made / "rows.npz", "--width", 6, "--epochs", 2, "-o", "two.safetensors")
    assert "stopped_after_passes" not in load_about(tmp_path / "two.safetensors")
    assert all(torch.equal(a, b) for a, b in zip(weights(kept), weights(tmp_path / "two.safetensors"), strict=True))
    assert PolyReLUClassifier.load(kept).n_iter_ == 2
    finished(tmp_path, "fit", made / "rows.npz", "--width", 6, "--epochs", 9, "-o", "head.safetensors")
    assert "stopped_after_passes" not in load_about(kept)  # the same command has replaced it
    assert [path.name for path in tmp_path.glob("*stopped*")] == []


@pytest.mark.slow
def test_fit_on_many_rows_stops_within_a_pass_at_the_last_whole_one(tmp_path):
    """25 600 rows: told once within each pass, once after it; the fifth word comes within the third pass."""
    source = np.random.default_rng(0)
    y = np.arange(32_000) % 2  # four fifths of them, 25 600, are trained on
    np.savez(tmp_path / "rows.npz", X=(2 * y[:, None] - 1) * np.ones(3) + source.normal(size=(32_000, 3)), y=y)
    words = ("fit", "rows.npz", "--width", 4, "-o")
    run = Command(tmp_path, *words, "head.safetensors", "--epochs", 5,
                  hold="polyrelu.cli.terminal:TerminalProgress.update:5").until("held")  # fmt: skip
    code, said = run.press().until(AGAIN).let_go().end()
    assert code == 130 and "the head after 2 whole passes is in head.safetensors" in said
    finished(tmp_path, *words, "two.safetensors", "--epochs", 2)
    both = zip(weights(tmp_path / "head.safetensors"), weights(tmp_path / "two.safetensors"), strict=True)
    assert all(torch.equal(a, b) for a, b in both)


@pytest.mark.slow
def test_fit_before_a_pass_is_complete_keeps_nothing_and_says_so(made, tmp_path):
    run = Command(tmp_path, "fit", made / "rows.npz", "-o", "head.safetensors", hold="polyrelu.workflows.fit:_train:1")
    code, said = run.until("held").press().end()
    assert code == 130 and f"polyrelu: interrupted; nothing is written, and {NEW}" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_fit_that_is_stopped_spares_a_finished_head(made, tmp_path):
    finished(tmp_path, "fit", made / "rows.npz", "--width", 6, "--epochs", 2, "-o", "head.safetensors")
    before = (tmp_path / "head.safetensors").read_bytes()
    run = Command(tmp_path, "fit", made / "rows.npz", "--width", 6, "-o", "head.safetensors",
                  hold="polyrelu.cli.terminal:TerminalProgress.update:1+").until("held")  # fmt: skip
    code, said = run.press().until(AGAIN).let_go().end()
    assert code == 130 and "the head after 2 whole passes is in head-stopped.safetensors" in said
    assert "; head.safetensors is as it was" in said
    assert (tmp_path / "head.safetensors").read_bytes() == before
    assert load_about(tmp_path / "head-stopped.safetensors")["stopped_after_passes"] == 2


@pytest.mark.slow
def test_fit_that_is_being_measured_keeps_the_trained_head(made, tmp_path):
    words = ("fit", made / "rows.npz", "--width", 6, "--epochs", 2, "-o")
    run = Command(tmp_path, *words, "head.safetensors", hold="polyrelu.estimator.robustness_mixin:bracket:1")
    code, said = run.until("held").press().until("polyrelu: keeping the head, which is trained").let_go().end()
    assert code == 130 and "interrupted; the head is trained and in head.safetensors, but not measured" in said
    finished(tmp_path, *words, "whole.safetensors")
    both = [tmp_path / name for name in ("head.safetensors", "whole.safetensors")]
    assert load_about(both[0]) == load_about(both[1])
    assert all(torch.equal(a, b) for a, b in zip(*map(weights, both), strict=True))
    finished(tmp_path, *shlex.split(said.split("Measure it with: polyrelu ")[1]), "--limit", 2, "--budget-nodes", 1)


# -------------------------------------------------------------------------------------------------------- predict

CERTIFY = "polyrelu.estimator.robustness_mixin:bracket"


@pytest.mark.slow
def test_certified_rows_are_kept_and_the_same_command_goes_on_from_them(made, tmp_path):
    words = ("predict", made / "head.safetensors", made / "rows.npz", "--radius", "-o")
    run = Command(tmp_path, *words, "p.csv", hold=f"{CERTIFY}:4")
    code, said = run.until("held").press().end()
    assert code == 130
    assert "polyrelu: interrupted; 300 rows are certified and kept, and the same command goes on from there" in said
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv.partial"]
    again = Command(tmp_path, *words, "p.csv", hold=f"{CERTIFY}:3")
    code, said = again.end()
    assert code == 0 and "held" not in said and "300 rows were certified before" in said  # two chunks were left
    finished(tmp_path, *words, "whole.csv")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv", "whole.csv"]


@pytest.mark.slow
def test_a_kill_costs_one_chunk_too(made, tmp_path):
    """Ten rows a chunk, so short that a buffer would hold both chunks back; 43 of 45 are left."""
    words = ("predict", made / "head.safetensors", made / "rows.npz", "--radius", "-o", "p.csv")
    small = {"SET": "polyrelu.workflows.predict.run:CERTIFIED=10"}
    run = Command(tmp_path, *words, hold=f"{CERTIFY}:3", **small).until("held").press(signal.SIGKILL)
    assert run.end()[0] == -signal.SIGKILL
    again = Command(tmp_path, *words, hold=f"{CERTIFY}:44", **small)
    code, said = again.end()
    assert code == 0 and "held" not in said and "20 rows were certified before" in said


@pytest.fixture(scope="module")
def interrupted(made, tmp_path_factory):
    """What is kept when the fourth chunk was under way."""
    folder = tmp_path_factory.mktemp("interrupted")
    words = ("predict", made / "head.safetensors", made / "rows.npz", "--radius", "-o", "p.csv")
    Command(folder, *words, hold=f"{CERTIFY}:4").until("held").press().end()
    return (folder / "p.csv.partial").read_bytes()


@pytest.mark.slow
def test_before_any_row_it_says_what_an_earlier_run_left(made, interrupted, tmp_path):
    (tmp_path / "p.csv.partial").write_bytes(interrupted)
    words = ("predict", made / "head.safetensors", made / "rows.npz", "--radius", "-o", "p.csv")
    run = Command(tmp_path, *words, hold="polyrelu.workflows.predict.run:read_head:1")
    code, said = run.until("held").press().end()
    assert code == 130 and "certified rows of an earlier run are kept" in said, said


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["torn", "flipped", "other rows", "other head", "foreign", "folder"])
def test_kept_rows_that_do_not_fit_are_done_again(made, interrupted, tmp_path, harm):
    words = ["predict", made / "head.safetensors", tmp_path / "rows.npz", "--radius", "-o", "p.csv"]
    (tmp_path / "rows.npz").write_bytes((made / "rows.npz").read_bytes())
    kept = tmp_path / "p.csv.partial"
    kept.write_bytes(interrupted)
    lines = kept.read_bytes().splitlines(keepends=True)
    assert len(lines) == 4
    before, sentence = 200, "is damaged, or of other rows, from row 200 on: these are done again"
    if harm == "torn":
        kept.write_bytes(b"".join(lines)[:-7])
        sentence = ""
    elif harm == "flipped":  # a digit of a radius
        place = lines[3].rindex(b"]") - 2
        kept.write_bytes(b"".join(lines[:3]) + lines[3][:place] + bytes([lines[3][place] ^ 1]) + lines[3][place + 1 :])
    elif harm == "other rows":
        with np.load(tmp_path / "rows.npz") as stored:
            X, y = stored["X"], stored["y"]
        X[250] += 1e-6
        np.savez(tmp_path / "rows.npz", X=X, y=y)
    elif harm == "other head":
        with np.load(tmp_path / "rows.npz") as stored:
            other = PolyReLUClassifier(width=5, epochs=5, random_state=1).fit(stored["X"], stored["y"])
        words[1] = other.save(tmp_path / "other.safetensors")
        before, sentence = 0, "is of another head or version of polyrelu: it is begun anew"
    else:
        kept.unlink()
        kept.mkdir() if harm == "folder" else kept.write_text("my notes\n")
        before, sentence = 0, "is none of ours: it is left alone, and nothing is kept if this is interrupted"
    said = finished(tmp_path, *words).stderr
    assert sentence in said
    assert (f"{before} rows were certified before" in said) == (before > 0)
    assert kept.exists() == (harm in ("foreign", "folder"))
    finished(tmp_path, *words[:-1], "whole.csv")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.slow
def test_two_predictions_into_one_file_do_not_mix(made, tmp_path):
    words = ("predict", made / "head.safetensors", made / "rows.npz", "--radius", "-o", "p.csv")
    first = Command(tmp_path, *words, hold=f"{CERTIFY}:2").until("held")
    code, said = Command(tmp_path, *words).end()
    assert code == 2 and "out=p.csv: another run is at work on it" in said
    assert first.let_go().end()[0] == 0


@pytest.mark.slow
def test_stdout_gets_whole_lines_of_whole_chunks(made, tmp_path):
    words = ("predict", made / "head.safetensors", made / "rows.npz", "--radius")
    run = Command(tmp_path, *words, hold=f"{CERTIFY}:3").until("held").press().until(AGAIN).let_go()
    code, said = run.end()
    assert (
        code == 130 and "interrupted; the first 300 rows are written. With --out FILE certified rows are kept" in said
    )
    lines = run.said["stdout"].splitlines(keepends=True)
    whole = finished(tmp_path, *words).stdout
    assert len(lines) == 301 and "".join(lines) == "".join(whole.splitlines(keepends=True)[:301])
