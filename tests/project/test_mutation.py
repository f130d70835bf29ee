"""The driver of the mutation tests: what it changes, and that it notices when nobody does."""

from __future__ import annotations

import ast

import pytest

from bench.mutation import PACKAGE, TESTS, Mutant, made_from, mutants, verdict_on

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

SOURCE = """
@dataclass(frozen=True)
class One:
    size: int = 3

def longer(one: int | None, other) -> bool:
    if one > other and not None:
        note(one)
        return [one + 1]
    return True
"""


def test_a_mutant_is_one_change_and_every_kind_is_made() -> None:
    made = mutants("one.py", SOURCE)
    assert [(mutant.line, mutant.change) for mutant in made] == [
        (4, "3 -> 4"),
        (7, "Gt -> GtE"),
        (7, "and -> or"),
        (7, "condition negated"),
        (8, "call left out"),
        (9, "1 -> 2"),
        (9, "Add -> Sub"),
        (9, "return -> return None"),
        (10, "True -> False"),
    ]
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in made:
        changed = mutant.source.splitlines()
        assert sum(a != b for a, b in zip(plain, changed, strict=True)) == 1


def test_every_file_of_the_core_has_mutants_and_tests_that_are_there() -> None:
    for file, tests in TESTS.items():
        assert next(made_from(file, (PACKAGE / file).read_text(encoding="utf-8")), None) is not None
        assert all((PACKAGE.parents[1] / test).exists() for test in tests)


def test_a_broken_file_is_killed_and_an_unused_change_survives() -> None:
    source = (PACKAGE / "tokens" / "windows.py").read_text(encoding="utf-8")
    tests = ("tests/tokens/test_windows.py",)
    assert (
        verdict_on(Mutant("tokens/windows.py", 1, "broken", "raise RuntimeError\n"), tests, 100) == "killed"
    )
    assert (
        verdict_on(Mutant("tokens/windows.py", 1, "a comment", source + "\n# more\n"), tests, 100)
        == "survived"
    )
