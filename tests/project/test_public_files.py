"""The files that a forge shows: they name what exists, and the workflows run what the package supports."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md"]
GITHUB = sorted((ROOT / ".github").rglob("*.*"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ADDRESS = re.compile(r"https?://[^\s)>\"']+|[\w.+-]+@[\w-]+\.\w[\w.]+")
KNOWN = {"https://keepachangelog.com"}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_that_exist(page: str) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text("utf-8"))
    assert [each for each in targets if "://" not in each and not (ROOT / each).exists()] == []


@pytest.mark.parametrize("path", [*(ROOT / page for page in PAGES), *GITHUB], ids=lambda path: path.name)
def test_no_address_is_made_up(path: Path) -> None:
    assert set(ADDRESS.findall(path.read_text("utf-8"))) <= KNOWN


@pytest.mark.parametrize("path", [*(ROOT / page for page in PAGES), *GITHUB], ids=lambda path: path.name)
def test_every_make_target_that_is_named_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|run: |^)make ([a-z-]+)", path.read_text("utf-8"), re.MULTILINE))
    assert named <= targets


def test_the_workflows_run_every_version_that_the_package_claims() -> None:
    claimed = [
        each.rpartition(" ")[2] for each in PROJECT["project"]["classifiers"] if ":: Python :: 3." in each
    ]
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == claimed
    assert PROJECT["project"]["requires-python"] == f">={claimed[0]}"


def test_a_release_is_tested_attested_and_published_without_a_stored_secret() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert [jobs[job].get("needs") for job in ("ci", "attest", "publish")] == [None, "ci", "attest"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text


def test_the_hooks_run_the_tools_of_the_environment() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
    assert all(hook["language"] == "system" for hook in hooks["repos"][0]["hooks"])


def test_the_map_names_every_room() -> None:
    rooms = {path.name for path in (ROOT / "src" / "compact").iterdir() if (path / "__init__.py").is_file()}
    for page in ("AGENTS.md", "docs/ARCHITECTURE.md"):
        named = set(re.findall(r"^\| `(\w+)/` \|", (ROOT / page).read_text("utf-8"), re.MULTILINE))
        assert named == rooms


def test_the_source_distribution_has_what_its_tests_need() -> None:
    listed = {each.strip("/") for each in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    assert [each for each in listed if not (ROOT / each).exists()] == []
    assert listed >= {*PAGES, "src", "tests", "scripts", "bench", "docs", "examples", "Makefile", ".github"}
