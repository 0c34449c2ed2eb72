"""The errors that are planted: what each rule does, where it does nothing, and that survivors are told."""

from __future__ import annotations

import pytest

from tools.mutants import locate
from tools.mutants.locate import defined, mutants_of
from tools.mutants.record import Outcome, Reason, reasons, report
from tools.mutants.rules import CHECKS, HASHES, TERMS, plant
from tools.mutants.targets import TARGETS


def planted(line: str, kind: str) -> set[str]:
    """Everything that becomes of the body of a function."""
    source = f"def f(a, b, c):\n    {line}\n".encode()
    return {edit.applied(source).decode().split("\n", 1)[1].strip() for edit in plant(source, frozenset({kind}))}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("return a + b", {"return (a)", "return (b)", "return (a - (b))"}),
        ("return a - b", {"return (a)", "return (a + (b))"}),
        ("return a * b", {"return (a)", "return (b)"}),
        ("return a / b", {"return (a)"}),
        ("return -a", {"return (a)"}),
        ("return a < b", {"return (a >= b)"}),
        ("return a.clamp(min=0)", {"return (a)"}),
        ("return a.amin(dim=1)", {"return a.amax(dim=1)"}),
        ("return torch.minimum(a, b)", {"return torch.maximum(a, b)"}),
        ("return math.sqrt(a)", {"return (1.0)"}),
        ("return gamma(4 * 3)", {"return (0.0)", "return gamma((4))", "return gamma((3))"}),
        ("return torch.where(a, b, c)", {"return (b)", "return (c)"}),
        ("a += b", {"pass"}),
        ("a.add_(b)", {"pass"}),
        ('return "a" + b', set()),
        ("return a[b + 1]", set()),
        ("return a.sum(dim=-1)", set()),
    ],
)
def test_terms(line, found):
    assert planted(line, TERMS) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("require(a, 'a', a, 'b')", {"pass"}),
        ("require(a and b, 'a', a, 'b')", {"pass", "require(((b)), 'a', a, 'b')", "require(((a)), 'a', a, 'b')"}),
        ("require(0 < a <= b)", {"pass", "require(0 <= a <= b)", "require(0 < a < b)"}),
        ("return load(a, allow_pickle=False)", {"return load(a, allow_pickle=(True))"}),
        ("return load(a, weights_only=True)", {"return load(a, weights_only=(False))"}),
        ("a['x'] = b", {"pass"}),
        ("return project(a, b)", {"return (a)"}),
        ("return a + b", set()),
    ],
)
def test_checks(line, found):
    assert planted(line, CHECKS) == found


def test_a_check_that_raises_or_returns_is_left_out():
    assert planted("if a:\n        raise b", CHECKS) == {"if (False):\n        raise b"}
    assert planted("if a:\n        return None", CHECKS) == {"if (False):\n        return None"}
    assert planted("if a:\n        b = 1", CHECKS) == set()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("return digest({'a': a, 'b': b})", {"return digest(({'b': b}))", "return digest(({'a': a}))"}),
        ("return digest((a, b))", {"return digest(((b,)))", "return digest(((a,)))"}),
        ("return digest(a + b)", {"return digest((a))", "return digest((b))"}),
        ("return sorted(a)", {"return (list(a))"}),
    ],
)
def test_hashes(line, found):
    assert planted(line, HASHES) == found


def test_small_constants_become_zero_and_others_stay():
    source = b"UNIT = 2.0**-53\nSIZE = 100\nHALF = 0.5\n"
    assert [edit.applied(source) for edit in plant(source, frozenset({TERMS}))] == [
        b"UNIT = (0.0)\nSIZE = 100\nHALF = 0.5\n"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.subject)
def test_every_target_is_there_once_and_has_tests(target):
    assert len(defined()[target.subject]) == 1
    found = mutants_of(target)
    assert found and locate.tests_of(target)
    assert len({mutant.key for mutant in found}) == len(found)


def test_every_reason_is_about_something():
    everything = [mutant for target in TARGETS for mutant in mutants_of(target)]
    for reason in reasons():
        assert any(reason.covers(mutant) for mutant in everything), reason
        assert len(reason.reason) > 20


def test_survivors_are_told_and_reasons_count(capsys, monkeypatch):
    some = mutants_of(TARGETS[0])[:3]
    outcomes = {mutant: Outcome(mutant.key, number == 0, "", 1.0, {}) for number, mutant in enumerate(some)}
    monkeypatch.setattr("tools.mutants.record.reasons", lambda: [Reason(*some[1].place, "it is the same")])
    assert report(outcomes, some, [TARGETS[0].subject]) == 1
    said = capsys.readouterr().out
    assert said.count(f"survived  {TARGETS[0].subject}") == 1 and some[2].edit.before in said
    assert said.splitlines()[-1].split() == ["all", "3", "1", "1", "1", "0", "33.3"]
