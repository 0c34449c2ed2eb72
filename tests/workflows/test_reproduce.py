"""Claims from the command line to the page, with cheap claims and real worker processes."""

import json
import re

import pytest
from typer.testing import CliRunner

from polyrelu.claims import PROFILES, Verdict, catalogue, experiments, for_profile, load_experiment, select, settings_of
from polyrelu.cli import application as cli
from polyrelu.errors import InputError
from polyrelu.report.paper_figures import FIGURES
from polyrelu.sweep import digest
from polyrelu.workflows.reproduce import ReproductionSettings


def polyrelu_(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], prog_name="polyrelu", env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A6 and A15 measured once: what was printed, and the folder."""
    folder = tmp_path_factory.mktemp("claims") / "out"
    return polyrelu_("claims", "run", "A6", "A15", "--json", "--quiet", "--out", folder), folder


def kept(folder):
    return {file.name: file.stat().st_mtime_ns for file in (folder / "results").iterdir()}


def test_claims_are_measured_judged_and_kept(done):
    result, folder = done
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record == json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    assert {claim["id"]: claim["verdict"] for claim in record["claims"]} == {"A6": "reproduced", "A15": "reproduced"}
    assert all((folder / file).is_file() for claim in record["claims"] for file in claim["files"])


@pytest.mark.slow
def test_what_is_there_is_not_measured_again_and_the_folder_grows(done):
    _, folder = done
    before = kept(folder)
    assert polyrelu_("claims", "run", "A6", "A15", "--quiet", "--out", folder).exit_code == 0
    assert kept(folder) == before
    result = polyrelu_("reproduce", "--only", "A6", "--seeds", "3", "--quiet", "--out", folder)
    assert result.exit_code == 0, result.stderr
    assert kept(folder).items() > before.items()
    assert len(kept(folder)) == len(before) + 1  # seed 2 of A6
    page = (folder / "index.html").read_text(encoding="utf-8")
    links = set(re.findall(r'href="(results/[^"]+)"', page))
    assert links
    assert all((folder / link).is_file() for link in links)


@pytest.mark.slow
def test_a_broken_measurement_turns_red_on_the_page_and_in_the_exit_code(tmp_path):
    assert polyrelu_("claims", "run", "A15", "--quiet", "--out", tmp_path / "out").exit_code == 0
    file = next((tmp_path / "out" / "results").iterdir())
    record = json.loads(file.read_text(encoding="utf-8"))
    record["result"]["values"][0]["value"] *= 1.1
    content = {key: value for key, value in record.items() if key not in ("format", "check")}
    file.write_text(json.dumps({**record, "check": digest(content)}), encoding="utf-8")
    result = polyrelu_("reproduce", "--only", "A15", "--quiet", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "A15 differs" in result.stderr
    assert record["result"]["values"][0]["quantity"] in result.stderr
    assert "1 differs" in result.stdout
    assert "differs" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("claims", "run", "A66"), "nearest is A6"),
        (("claims", "list", "Q"), "expected an id"),
        (("reproduce", "--only", "fig22"), "fig2"),
        (("claims", "run", "A6", "--profile", "fast"), "one of quick, paper"),
        (("claims", "run", "A6", "--seeds", "0"), "seeds=0"),
        (("claims", "run", "A6", "--engine", "slurm"), "local or ray"),
        (("claims", "run", "A6", "--workers", "0"), "workers=0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = polyrelu_(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_list_shows_every_claim():
    result = polyrelu_("claims", "list", "--json")
    assert [claim["id"] for claim in json.loads(result.stdout)] == list(catalogue())
    assert "A6" in polyrelu_("claims", "list", "A").stdout


# ----------------------------------------------------------------------------------------------------- the catalogue


def test_all_of_groups_a_b_and_e_and_the_inconsistencies_are_there():
    wanted = [f"{group}{number}" for group, last in (("A", 15), ("B", 32), ("E", 28), ("I", 25))
              for number in range(1, last + 1)]  # fmt: skip
    assert [name for name in wanted if name not in catalogue()] == []


@pytest.mark.parametrize("claim", catalogue().values(), ids=lambda claim: claim.id)
def test_every_claim_is_whole(claim):
    assert re.search(r"[.!?]$", claim.sentence)
    assert claim.published
    assert claim.where
    for profile in PROFILES:
        assert for_profile(claim.settings, profile)
        blocked = load_experiment(claim.experiment).needs(profile) if claim.experiment else claim.reason
        assert blocked or for_profile(claim.checks, profile), "nothing is checked"
        if for_profile(claim.expects, profile) in (Verdict.ARTEFACT, Verdict.DIFFERS) and not blocked:
            assert for_profile(claim.reason, profile), "a researcher wants to know why"
        if for_profile(claim.expects, profile) is Verdict.ARTEFACT and not blocked:
            assert for_profile(claim.why, profile)


@pytest.mark.slow
def test_experiments_have_names_of_their_own_and_plain_settings():
    named: dict[str, object] = {}
    for claim in catalogue().values():
        if not claim.experiment:
            continue
        experiment = load_experiment(claim.experiment)
        known = named.setdefault(experiment.name, experiment.run)
        assert known is experiment.run, "two functions share a name"
    assert named.keys() == experiments().keys()
    for profile in PROFILES:
        settings = settings_of(catalogue().values(), profile)
        assert settings == json.loads(json.dumps(settings))


def test_figures_name_claims_that_exist():
    for figure in FIGURES:
        assert [claim.id for claim in select(figure.claims)] == sorted(figure.claims, key=list(catalogue()).index)
        assert (
            ReproductionSettings((figure.id,)).figures(ReproductionSettings((figure.id,)).claims()).count(figure) == 1
        )


def test_the_published_size_of_figure_2():
    claims = ReproductionSettings(("fig2",)).claims()
    parts = [one for one in settings_of(claims, "paper") if "alpha" in one["part"]]
    assert len({(one["experiment"], one["seed"], one["part"]["alpha"]) for one in parts}) == 2 * 5 * 15


def test_an_unknown_claim_names_the_nearest():
    with pytest.raises(InputError, match="nearest is B31"):
        select(["B331"])
