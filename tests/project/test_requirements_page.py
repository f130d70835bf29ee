"""docs/REQUIREMENTS.md, and the README's promises, name files and tests that exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "REQUIREMENTS.md", ROOT / "README.md"]
NAMED = re.compile(r"`((?:src|tests|docs|bench|examples)/[^`:\s]+|pyproject\.toml|Makefile)(?:::(\w+))?`")
SOURCES = (
    "Stability harness PRD",
    "Compaction specification",
    "Context management guide",
    "Context compaction PRD",
    "Progressive compaction addendum",
)
NUMBERED = re.compile(r"(?:(FR|NFR|Scenario )(\d+): )|(\d+)\) |(\d+)\.(\d+)[ :]")


def rows(title: str) -> list[list[str]]:
    """The cells of a source's table, without its head."""
    page = PAGES[0].read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def requirements(title: str) -> list[list[str]]:
    """The rows that are requirements: no headings, and not what is out of scope."""
    return [row for row in rows(title) if not row[0].startswith("**") and row[0] != "Out of Scope"]


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> frozenset[str]:
    """Every test that pytest collects, as `file::function`: from this run, and afresh for files that it leaves out."""
    here = {_place(item.nodeid) for item in request.session.items}
    named = {
        f"{path}::{test}" for page in PAGES for path, test in NAMED.findall(page.read_text("utf-8")) if test
    }
    missing = sorted({name.partition("::")[0] for name in named - here})
    existing = [path for path in missing if (ROOT / path).is_file()]
    if not existing:
        return frozenset(here)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", ""]
    done = subprocess.run([*command, *existing], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 5), done.stdout[-2_000:]
    return frozenset(here | {_place(line) for line in done.stdout.splitlines() if "::" in line})


def _place(nodeid: str) -> str:
    """A test's file and function, without its class and its parameters."""
    file, *_, function = nodeid.partition("[")[0].strip().split("::")
    return f"{file}::{function}"


def test_every_file_and_test_that_is_named_exists(collected: frozenset[str]) -> None:
    """A test exists if pytest collects it. A function that only looks like one does not count."""
    for page in PAGES:
        named = NAMED.findall(page.read_text("utf-8"))
        assert len(named) >= 10
        files = [path for path, _ in named if not (ROOT / path).exists()]
        tests = [f"{path}::{test}" for path, test in named if test and f"{path}::{test}" not in collected]
        assert files + tests == [], page.name


def test_every_requirement_has_a_place_and_a_proof(collected: frozenset[str]) -> None:
    """The proof is a test that is collected, or a figure of the benchmarks; words are none."""
    lacking = []
    for title in SOURCES:
        assert requirements(title), title
        for name, *cells in requirements(title):
            where, shown, _decided = cells
            proofs = [
                path
                for path, test in NAMED.findall(shown)
                if f"{path}::{test}" in collected or (not test and path.startswith("bench/"))
            ]
            if not NAMED.search(where) or not proofs:
                lacking.append(f"{title}: {name}")
    assert lacking == []


def test_no_requirement_is_missing_between_its_neighbours() -> None:
    """Every heading has a requirement below it, no requirement has two rows of the same name, and numbers have no gaps."""
    for title in SOURCES:
        names = [row[0] for row in rows(title)]
        bare = [
            one for one, after in pairwise([*names, "**"]) if one.startswith("**") and after.startswith("**")
        ]
        assert bare == [], title
        own = [row[0] for row in requirements(title)]
        assert sorted(set(own)) == sorted(own), title
        numbers: dict[str, list[int]] = {}
        for name in own:
            if found := NUMBERED.match(name):
                kind, number, step, chapter, section = found.groups()
                key, value = (kind, number) if kind else ("step", step) if step else (f"{chapter}.", section)
                numbers.setdefault(key, []).append(int(value))
        for key, values in numbers.items():
            present = sorted(set(values))
            assert present == list(range(present[0], present[-1] + 1)), (title, key)
            assert key.endswith(".") or present[0] == 1, (title, key)


def test_the_gate_refuses_less_coverage_than_the_specification_asks_for(tmp_path: Path) -> None:
    """A package of which 85% is covered fails under the settings that `make test-all` uses, and nothing overrides them."""
    commands = subprocess.run(
        ["make", "--dry-run", "test-all"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    given = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"][
        "addopts"
    ]
    assert " --cov " in commands
    for override in ("--cov-fail-under", "--no-cov", "--cov-config"):
        assert override not in commands
        assert not any(override in option for option in given)
    effective = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"))
    assert float(str(effective.get_option("report:fail_under"))) >= 90
    assert effective.get_option("run:branch") is True
    assert effective.get_option("run:source_pkgs") == ["compact"], "all of it is measured"
    assert not effective.get_option("run:omit")
    assert not effective.get_option("report:omit")
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
