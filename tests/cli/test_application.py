"""The entry point: what it loads, its help, its version, its errors."""

import subprocess
import sys

import pytest
from running import ALONE, SMALL, program
from waiting import LIMIT

import polyrelu


def test_importing_the_command_line_imports_nothing_heavy():
    heavy = {"torch", "numpy", "matplotlib", "jinja2"}
    code = f"import sys, polyrelu.cli.application; print(*{heavy} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ALONE, check=True)
    assert result.stdout.split() == []


def test_help_shows_purpose_groups_example_and_exit_status():
    result = program("flow", "--help")
    assert result.returncode == 0
    for words in (
        "gradient flow",
        "Network",
        "Data",
        "Stop at the first of",
        "Example",
        "Exit status",
        "[default: 0.1]",
    ):
        assert words in result.stdout
    assert "reproduce" in program("--help").stdout


def test_version():
    result = program("--version")
    assert (result.returncode, result.stdout) == (0, f"polyrelu {polyrelu.__version__}\n")


@pytest.mark.slow
def test_errors_have_no_traceback_outside_the_tests_either(tmp_path):
    result = program("flow", *SMALL, "--p", 0.5, "--out", tmp_path / "run")
    assert result.returncode == 2
    assert result.stderr == "polyrelu: error: p=0.5: expected a finite number >= 1.\n"


def test_the_package_is_a_program_too():
    said = subprocess.run(
        [sys.executable, "-m", "polyrelu", "--version"],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=ALONE,
        check=True,
    )
    assert polyrelu.__version__ in said.stdout
