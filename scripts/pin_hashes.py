"""Pin the hash of every package in constraints.txt: `python -m scripts.pin_hashes > constraints.hashes.txt`.

A release is built with `pip --require-hashes`, so that an index, a mirror or a proxy cannot slip another file under a version.
The hashes are those of the wheels for Linux (x86-64) and each supported Python, from the index that pip is configured with; no
address is written down. Nothing is installed or run: pip only resolves.

`python -m scripts.pin_hashes NAME ...` prints the lines of some packages, to install these alone.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
HASHES = ROOT / "constraints.hashes.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_GLIBC = ("2_34", "2_31", "2_28", "2_27", "2_24", "2_17", "2_12", "2_5")
PLATFORMS = (*(f"manylinux_{version}_x86_64" for version in _GLIBC), "manylinux2014_x86_64", "linux_x86_64")
_HEADER = """\
# Hashes of everything in constraints.txt, for Linux (x86-64). Written by `python -m scripts.pin_hashes`.
# Install with: pip install --require-hashes --no-deps --requirement constraints.hashes.txt
"""


def pinned(text: str) -> dict[str, str]:
    """Read the lines `name==version` of a constraints file, without comments and hashes. Names are normalised."""
    pins = (line.split(" ")[0] for line in text.splitlines() if "==" in line and not line.startswith("#"))
    return {canonical(name): version for name, _, version in (pin.partition("==") for pin in pins)}


def canonical(name: str) -> str:
    """The name of a package as an index compares it."""
    return name.lower().replace("_", "-").replace(".", "-")


def hashes(python: str, constraints: Path) -> Iterator[tuple[str, str]]:
    """Resolve every package for one Python; yield names and SHA-256 hashes.

    Raises:
        CalledProcessError: a package has no wheel for it, or the index cannot be reached.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--no-deps",
            "--ignore-installed",
        ]
        where = ["--only-binary", ":all:", "--python-version", python, *platforms, "--target", folder]
        subprocess.run([*pip, *where, "--report", str(report), "--requirement", str(constraints)], check=True)
        found: Mapping[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    for entry in found["install"]:
        yield canonical(entry["metadata"]["name"]), entry["download_info"]["archive_info"]["hashes"]["sha256"]


def written(pins: Mapping[str, str], found: Iterable[tuple[str, str]]) -> str:
    """Write the file: each package with its version and all its hashes.

    Raises:
        ValueError: a package has no hash.
    """
    by_name: dict[str, set[str]] = defaultdict(set)
    for name, digest in found:
        by_name[name].add(digest)
    lines = [_HEADER]
    for name, version in sorted(pins.items()):
        if not by_name[name]:
            raise ValueError(f"{name} has no hash")
        lines.append(
            " \\\n    ".join(
                [f"{name}=={version}", *(f"--hash=sha256:{each}" for each in sorted(by_name[name]))]
            )
        )
    return "\n".join(lines) + "\n"


def chosen(hashes: str, names: Iterable[str]) -> str:
    """The lines of some packages.

    Raises:
        ValueError: one of them is not pinned.
    """
    blocks = {name: block for block in re.split(r"\n(?=\S)", hashes.strip()) for name in pinned(block)}
    missing = [name for name in names if canonical(name) not in blocks]
    if missing:
        raise ValueError(f"not in {HASHES.name}: {', '.join(missing)}")
    return "".join(f"{blocks[canonical(name)]}\n" for name in names)


def main(names: Sequence[str]) -> None:
    """Write all hashes to standard output; or, if packages are named, the lines of these from the file that there is."""
    if names:
        sys.stdout.write(chosen(HASHES.read_text(encoding="utf-8"), names))
        return
    pins = pinned(CONSTRAINTS.read_text(encoding="utf-8"))
    found = [pair for python in PYTHONS for pair in hashes(python, CONSTRAINTS)]
    sys.stdout.write(written(pins, found))


if __name__ == "__main__":
    main(sys.argv[1:])
