"""The version of the installed distribution."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def read_version() -> str:
    """Return the version that the package was built with, or `0+unknown` if it was never installed."""
    try:
        return version("compact-context")
    except PackageNotFoundError:
        return "0+unknown"
