"""Write what a release is made of as a CycloneDX document: `python -m scripts.sbom [dist/*] > sbom.cdx.json`.

Its components are the packages that compact and its extras may install, at the versions and hashes that are tested; which
extra needs what is in the wheel's own metadata. The same inputs give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from scripts.pin_hashes import HASHES, ROOT, canonical, pinned

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


def document(hashes: str, files: Sequence[Path], version: str) -> dict[str, Any]:
    """Describe a release: the files of it, and every package of `hashes`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = project["name"]
    components = [_component(entry) for entry in _entries(hashes)]
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
        "dependencies": [{"ref": main["bom-ref"], "dependsOn": sorted(map(_ref, _direct(project, hashes)))}],
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


def _direct(project: dict[str, Any], hashes: str) -> set[tuple[str, str]]:
    """The packages that compact itself names, with all extras."""
    named = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    words = {canonical(re.split(r"[\[<>=!~ ;]", requirement)[0]) for requirement in named}
    return {(name, version) for name, version in pinned(hashes).items() if name in words}


def _ref(package: tuple[str, str]) -> str:
    return f"pkg:pypi/{package[0]}@{package[1]}"


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
