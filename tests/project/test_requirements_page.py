"""docs/REQUIREMENTS.md, and the README's promises, name files and tests that exist."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "REQUIREMENTS.md", ROOT / "README.md"]
NAMED = re.compile(r"`((?:src|tests|docs|bench|examples)/[^`:\s]+|pyproject\.toml|Makefile)(?:::(\w+))?`")
SOURCES = {
    "Stability harness PRD": 17,
    "Compaction specification": 18 + 46,
    "Context management guide": 17,
    "Context compaction PRD": 18,
    "Progressive compaction addendum": 26,
}
"""How many rows each table has: one for each requirement and scenario."""


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def rows(title: str) -> list[list[str]]:
    """The cells of a source's table, without its head."""
    page = PAGES[0].read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_test_that_is_named_exists(page: Path) -> None:
    named = NAMED.findall(page.read_text("utf-8"))
    assert len(named) >= 10
    missing = [
        f"{path}::{test}" if test else path
        for path, test in named
        if not (ROOT / path).exists() or (test and test not in functions_in(ROOT / path))
    ]
    assert missing == []


@pytest.mark.parametrize("title", SOURCES)
def test_every_requirement_has_a_place_and_a_test(title: str) -> None:
    found = rows(title)
    assert len(found) == SOURCES[title]
    for name, where, shown, *decided in found:
        if name.startswith("**") or name == "Out of Scope":
            continue
        assert NAMED.search(where), f"{name} says no place"
        assert "::test_" in shown or "bench/" in shown or "ten tests" in shown, f"{name} says no test"
        assert len(decided) == 1, f"{name} has a cell too many"


def test_the_gate_asks_for_more_coverage_than_the_specification() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert settings["tool"]["coverage"]["report"]["fail_under"] >= 85
    assert "--cov" in (ROOT / "Makefile").read_text("utf-8")
