"""`compact.__version__` names the installed distribution and costs nothing until it is read."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import compact
from compact._version import read_version

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_the_installed_distribution() -> None:
    assert compact.__version__ == version("compact-context")


def test_a_package_that_was_never_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("compact._version.version", missing)
    assert read_version.__wrapped__() == "0+unknown"


def test_importing_the_package_does_not_read_its_metadata() -> None:
    code = f"import compact, sys; sys.exit({importlib.metadata.__name__!r} in sys.modules)"
    subprocess.run([sys.executable, "-S", "-c", code], check=True, env={"PYTHONPATH": str(ROOT / "src")})


def test_the_build_takes_the_version_from_the_tag_and_has_a_fallback() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" in settings["project"]["dynamic"]
    assert settings["tool"]["hatch"]["version"]["source"] == "vcs"
    assert settings["tool"]["hatch"]["version"]["fallback-version"]
