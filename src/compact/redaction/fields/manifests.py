"""Manifests of Kubernetes Secrets in YAML: every value under `data` and `stringData` is a secret, whatever its name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from compact.redaction.fields.names import MANIFEST
from compact.redaction.rules.matches import Candidate, Finding

PATTERN = r"(?m)^[ \t-]*kind:[ \t]*[\"']?Secret[\"']?[ \t\r]*$"
_FIELD = re.compile(
    r"(?P<indent>[ \t]*)(?P<item>(?:- +)*)(?P<name>[\"']?[\w.\-]+[\"']?):(?:[ \t]+(?P<value>\S.*?))?[ \t\r]*\Z"
)
_HOLDERS = ("data", "stringData")
_BLOCK = re.compile(r"[|>][-+0-9]*\Z")


def find_manifest_values(text: str, candidates: Iterable[Candidate]) -> list[Finding]:
    """Find the values of every Secret in a text of YAML documents, in one pass over its lines."""
    if next(iter(candidates), None) is None:
        return []
    secrets: set[tuple[int, int]] = set()
    values: defaultdict[tuple[int, int], list[Finding]] = defaultdict(list)
    numbers: defaultdict[int, int] = defaultdict(int)
    """For each indent, the number of the mapping that is open there."""
    holder: tuple[int, int] | None = None
    holder_indent, block_indent = 0, -1
    start = 0
    for line in text.split("\n"):
        here, start = start, start + len(line) + 1
        bare = line.strip()
        if not bare:
            continue
        spaces = len(line) - len(line.lstrip(" \t"))
        if block_indent >= 0 and spaces > block_indent and holder:
            values[holder].append(_finding(here + spaces, here + spaces + len(bare)))
            continue
        block_indent = -1
        field = _FIELD.match(line)
        indent = spaces + len(field["item"]) if field else spaces
        if field is None or field["item"] or bare == "---":
            for deeper in [at for at in numbers if at >= (indent if field else spaces)]:
                numbers[deeper] += 1
            numbers.setdefault(indent, 0)
        else:
            for deeper in [at for at in numbers if at > indent]:
                numbers[deeper] += 1
        if holder and spaces <= holder_indent:
            holder = None
        if field is None:
            continue
        name, value = field["name"].strip("\"'"), field["value"] or ""
        if holder is None and name == "kind" and value.strip("\"'") == "Secret":
            secrets.add((indent, numbers[indent]))
        elif holder is None and name in _HOLDERS and not value:
            holder, holder_indent = (indent, numbers[indent]), indent
        elif holder is not None and _BLOCK.match(value):
            block_indent = spaces
        elif holder is not None and value:
            first = here + field.start("value")
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            values[holder].append(_finding(first + quoted, first + len(value) - quoted))
    return [finding for mapping in secrets for finding in values[mapping] if finding.start < finding.end]


def _finding(start: int, end: int) -> Finding:
    return Finding(start, end, MANIFEST.id, MANIFEST.replacement)
