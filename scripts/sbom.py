"""Write what a release is made of as a CycloneDX document: `python -m scripts.sbom [dist/*] > sbom.cdx.json`.

Its components are the packages that compact and its extras may install on Linux with any supported Python, at the versions and
hashes that are tested. What they need in turn is read from their own metadata, so the pinned packages have to be installed.
Tools that only build and test compact are not among them. The same inputs give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement

from scripts.pin_hashes import HASHES, PYTHONS, ROOT, canonical, pinned

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


def document(hashes: str, files: Sequence[Path], version: str) -> dict[str, Any]:
    """Describe a release: the files of it, and every package that it may install.

    Raises:
        PackageNotFoundError: one of them is not installed here, so what it needs is unknown.
        ValueError: one of them is not in `hashes`.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = project["name"]
    direct = direct_requirements(project)
    needed = closure(direct, lambda package: metadata.requires(package) or ()) - {canonical(name)}
    if unpinned := needed - pinned(hashes).keys():
        raise ValueError(f"not in constraints.hashes.txt: {', '.join(sorted(unpinned))}")
    components = [_component(entry) for entry in _entries(hashes) if entry[0] in needed]
    main = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
        "components": [_file(file) for file in sorted(files)],
    }
    content = json.dumps([main, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": main},
        "components": components,
        "dependencies": [{"ref": main["bom-ref"], "dependsOn": sorted(_named(direct, components))}],
    }


def _entries(hashes: str) -> list[tuple[str, str, list[str]]]:
    """The name, the version and the hashes of each package."""
    blocks = re.split(r"\n(?=\S)", hashes)
    return [
        (name, version, _DIGEST.findall(block)) for block in blocks for name, version in pinned(block).items()
    ]


def _component(entry: tuple[str, str, list[str]]) -> dict[str, Any]:
    name, version, digests = entry
    purl = f"pkg:pypi/{name}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in digests],
    }


def _file(file: Path) -> dict[str, Any]:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"type": "file", "name": file.name, "hashes": [{"alg": "SHA-256", "content": digest}]}


def direct_requirements(project: dict[str, Any]) -> list[str]:
    """What compact itself names, with all extras but those that stand for others."""
    extras = (each for extra in project["optional-dependencies"].values() for each in extra)
    own = canonical(project["name"])
    return [each for each in (*project["dependencies"], *extras) if canonical(Requirement(each).name) != own]


def closure(requirements: Iterable[str], requires: Callable[[str], Iterable[str]]) -> set[str]:
    """Return the names of these packages, of those that they need, and so on. Of each, only the extras that are asked for."""
    left = [Requirement(each) for each in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    while left:
        requirement = left.pop()
        asked = (canonical(requirement.name), frozenset(requirement.extras))
        if asked not in seen:
            seen.add(asked)
            needs = map(Requirement, requires(asked[0]))
            left += [each for each in needs if _applies(each, asked[1])]
    return {name for name, _ in seen}


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(
        marker.evaluate({"extra": extra, "python_version": python, "python_full_version": f"{python}.0"})
        for extra in ("", *extras)
        for python in PYTHONS
    )


def _named(requirements: Iterable[str], components: Iterable[dict[str, Any]]) -> list[str]:
    names = {canonical(Requirement(each).name) for each in requirements}
    return [each["bom-ref"] for each in components if each["name"] in names]


def main(arguments: Sequence[str]) -> None:
    """Write the document for these files to standard output. Their names say the version."""
    files = [Path(each) for each in arguments]
    found = [match[1] for file in files if (match := re.search(r"-(\d[^-]*?)(?:\.tar\.gz|-py3)", file.name))]
    version = found[0] if found else "0"
    sys.stdout.write(
        json.dumps(document(HASHES.read_text(encoding="utf-8"), files, version), indent=1) + "\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
