"""docs/REQUIREMENTS.md, and the README's promises, name files and tests that exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import coverage

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
"""How many requirements and scenarios each source has. Each has a row of its own, or more than one."""


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def rows(title: str) -> list[list[str]]:
    """The cells of a source's table, without its head."""
    page = PAGES[0].read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_every_file_and_test_that_is_named_exists() -> None:
    for page in PAGES:
        named = NAMED.findall(page.read_text("utf-8"))
        assert len(named) >= 10
        missing = [
            f"{path}::{test}" if test else path
            for path, test in named
            if not (ROOT / path).exists() or (test and test not in functions_in(ROOT / path))
        ]
        assert missing == [], page.name


def test_every_requirement_has_a_place_and_a_proof() -> None:
    """The proof is a test, or a figure of the benchmarks."""
    lacking = []
    for title, requirements in SOURCES.items():
        found = rows(title)
        assert len(found) >= requirements, title
        for name, *cells in found:
            if name.startswith("**") or name == "Out of Scope":
                continue
            where, shown, _decided = cells
            proofs = [path for path, test in NAMED.findall(shown) if test or path.startswith("bench/")]
            if not NAMED.search(where) or not proofs:
                lacking.append(f"{title}: {name}")
    assert lacking == []


def test_the_gate_refuses_less_coverage_than_the_specification_asks_for(tmp_path: Path) -> None:
    """A package of which 85% is covered fails under the settings that `make test-all` uses."""
    commands = subprocess.run(
        ["make", "--dry-run", "test-all"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert " --cov " in commands
    code = tmp_path / "covered.py"
    code.write_text("x = 1\n" * 16 + "def never_called() -> None:\n" + "    x = 1\n" * 3)
    data = coverage.CoverageData(str(tmp_path / ".coverage"))
    data.add_lines({str(code): range(1, 18)})
    data.write()
    done = subprocess.run(
        [sys.executable, "-m", "coverage", "report", f"--rcfile={ROOT / 'pyproject.toml'}", f"--data-file={tmp_path / '.coverage'}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout
    assert "total of 85 is less than fail-under" in done.stdout
