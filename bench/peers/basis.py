"""The conditions of a measurement. If they change, its numbers are no longer valid."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import compact
from bench.peers import NAMES, Peer

_ROOT = Path(__file__).resolve().parents[2]
_WRITES_ONLY = ("__main__", "basis", "plot", "report")
"""Modules of this folder that do not affect any number."""


def basis_of(name: str, peer: Peer, every: int) -> dict[str, str]:
    """The tool, how it is called and scored, and the machine. `every` says which part of the cases is measured."""
    return {
        "tool": our_source() if name == "ours" else version(peer.DISTRIBUTION),
        "measured_by": f"{digest(_measuring(name))}, one case in {every}",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
    }


def our_source() -> str:
    """A hash of compact's source, used instead of its version, which changes rarely."""
    package = Path(compact.__file__).parent
    return digest(file for file in package.rglob("*") if "__pycache__" not in file.parts)


def digest(files: Iterable[Path]) -> str:
    """A hash of the names and contents of files, independent of their order."""
    found = hashlib.sha256()
    for file in sorted(set(files)):
        if file.is_file():
            content = file.read_bytes()
            found.update(f"{file.name} {len(content)}\n".encode() + content)
    return found.hexdigest()[:16]


def _measuring(name: str) -> list[Path]:
    others = {*NAMES, *_WRITES_ONLY} - {name}
    here = [file for file in Path(__file__).parent.glob("*.py") if file.stem not in others]
    return [*here, _ROOT / "bench" / "retention.py", _ROOT / "bench" / "methods.py"]
