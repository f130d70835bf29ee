"""What observed usage taught of models: one small file for each, `_models/{model}.json`, in the root of its tenant.

A file holds two sums, so several processes may add to it. If two write at the same moment, the samples of one are lost, and
nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compact.archive import keys
from compact.archive.reading import Reader
from compact.archive.records import digest, to_line, trust_stored
from compact.archive.verifying import Defect
from compact.errors import ArchiveError

_FORMAT = 1
_MOST_BYTES = 10_000
_MOST_TOKENS = 2_000_000
"""Above this, both sums are halved, so that a change of the provider shows."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How much requests of a model grew: by our own count without its margin, and by the provider's."""

    raw: int
    counted: int

    def __add__(self, other: Growth) -> Growth:
        return Growth(self.raw + other.raw, self.counted + other.counted)

    @property
    def factor(self) -> float:
        """How many tokens the provider counts for each raw one of ours, rounded up to .01."""
        return -(-self.counted * 100 // max(1, self.raw)) / 100


def read_growth(archive: Reader, model: str, label: str) -> Growth | None:
    """Return what is known of a model; None if nothing is. `label` is its name with secrets masked.

    Raises:
        ArchiveError: the store failed, or the file is damaged (reason "damaged").
    """
    key = keys.model_key(model, label)
    data = archive.store.read(key)
    return None if data is None else _parse(data, key)


def add_growth(archive: Reader, model: str, label: str, more: Growth) -> Growth:
    """Add to what is known of a model, and return it all. A damaged file is replaced.

    Raises:
        ArchiveError: the store failed.
    """
    try:
        known = read_growth(archive, model, label) or Growth(0, 0)
    except ArchiveError as problem:
        if problem.reason != "damaged":
            raise
        known = Growth(0, 0)
    found = known + more
    if found.raw > _MOST_TOKENS:
        found = Growth(found.raw // 2, found.counted // 2)
    note = {
        "format": _FORMAT,
        "model": label,
        "factor": found.factor,
        "raw_tokens": found.raw,
        "counted_tokens": found.counted,
    }
    # The label is all in it that a host wrote, and it is masked.
    archive.store.replace(keys.model_key(model, label), trust_stored(to_line(note)))
    return found


def verify_models(archive: Reader) -> Iterator[Defect]:
    """Find the files of models that cannot be read, and whatever else lies in their folder."""
    try:
        blobs = [blob for blob in archive.store.blobs(keys.MODELS) if not blob.hidden]
    except ArchiveError as problem:
        yield Defect(keys.MODELS, keys.MODELS, "unreadable", problem.message)
        return
    for blob in blobs:
        if not keys.is_model_file(blob.name):
            yield Defect(keys.MODELS, blob.key, "orphan", "the archive makes no file of this name")
            continue
        try:
            data = archive.store.read(blob.key)
            if data is not None:
                _parse(data, blob.key)
        except ArchiveError as problem:
            damaged = problem.reason == "damaged"
            yield Defect(keys.MODELS, blob.key, "damaged" if damaged else "unreadable", problem.message)


def _parse(data: bytes, key: str) -> Growth:
    try:
        found: Any = json.loads(data) if len(data) <= _MOST_BYTES else None
        growth = Growth(found["raw_tokens"], found["counted_tokens"])
        is_right = found["format"] == _FORMAT and type(growth.raw) is type(growth.counted) is int
        if is_right and growth.raw > 0 and growth.counted > 0:
            return growth
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise ArchiveError(
        f"the file with what was learned of a model is damaged ({len(data):,} bytes, sha256 {digest(data)[:12]})",
        hint="It is replaced when more is learned; remove it to be rid of this",
        key=key,
        reason="damaged",
    )
