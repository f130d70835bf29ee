"""Control: whether the authority of a session still stands where it stood, compared by hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from compact.tools.harness.artifacts import AUTHORITY, as_artifacts
from compact.tools.harness.entries import checked, digest_of, id_of

_SHOWN = 12


class Fingerprint(NamedTuple):
    """One authority artifact: its kind, its name, and the hash of what the model reads of it."""

    kind: str
    id: str
    digest: str


def fingerprints(
    artifacts: Iterable[Mapping[str, Any]], ids: Sequence[str] | None = None
) -> list[Fingerprint]:
    """The authority artifacts, as they stand; `ids` are their names where those are known.

    Raises:
        MessageError: an entry is not an artifact.
    """
    found: list[Fingerprint] = []
    for index, item in enumerate(artifacts):
        kind = checked(item, index)
        if kind in AUTHORITY:
            name = id_of(item, index, kind) if ids is None else ids[index]
            found.append(Fingerprint(kind, name, digest_of(item, kind)))
    return found


def in_order(found: Sequence[Fingerprint]) -> list[Fingerprint]:
    """As they belong: system before task, each in time."""
    return sorted(found, key=lambda one: AUTHORITY.index(one.kind))


def differences(expected: Sequence[Fingerprint], found: Sequence[Fingerprint]) -> list[str]:
    """What was pushed out, altered, duplicated, added or moved, a sentence each; empty when nothing was.

    Names may differ (a copy has none): it is the hashes that count.
    """
    wanted, present = Counter(one.digest for one in expected), Counter(one.digest for one in found)
    missing = _beyond(expected, present)
    extra = _beyond(found, wanted)
    told: list[str] = []
    for one in missing:
        other = next((each for each in extra if each.id == one.id), None) or next(
            (each for each in extra if each.kind == one.kind and each.digest not in wanted), None
        )
        if other is None:
            told.append(f"{one.id} ({one.kind}) was pushed out of the context")
        else:
            extra.remove(other)
            told.append(
                f"{one.id} ({one.kind}) was altered: sha256 {one.digest[:_SHOWN]} became {other.digest[:_SHOWN]}"
            )
    for one in extra:
        how = "is duplicated" if one.digest in wanted else "was added"
        told.append(f"{one.id} ({one.kind}) {how}")
    if not told:
        told += [
            f"{after.id} ({after.kind}) was moved: it stands where {before.id} stood"
            for before, after in zip(expected, found, strict=True)
            if before.digest != after.digest
        ]
    return told


def out_of_place(artifacts: Sequence[Mapping[str, Any]], ids: Sequence[str] | None = None) -> list[str]:
    """Every authority artifact that stands behind one of lower rank, a sentence each."""
    told: list[str] = []
    deepest, behind = 0, ""
    for index, item in enumerate(artifacts):
        kind = checked(item, index)
        rank = AUTHORITY.index(kind) if kind in AUTHORITY else len(AUTHORITY)
        name = id_of(item, index, kind) if ids is None else ids[index]
        if rank < deepest:
            told.append(f"{name} ({kind}) stands at place {index + 1}, behind {behind}")
        elif rank > deepest:
            deepest, behind = rank, f"{name} ({kind})"
    return told


def control_changes(turns: Iterable[Any]) -> list[str]:
    """Where a session lost control: each turn's context held against the first one's, by hash.

    Args:
        turns: the contexts as they were sent, one per turn: lists of artifacts or of messages of any dialect.

    Returns:
        A sentence for each turn and change: pushed out, altered, duplicated, added, moved. Empty: the authority of the
        first turn stood unchanged in front of every other.

    Raises:
        MessageError: a turn holds something that is not a message.
    """
    told: list[str] = []
    first: list[Fingerprint] | None = None
    for number, turn in enumerate(turns, 1):
        artifacts = list(as_artifacts(turn))
        if first is None:
            first = in_order(fingerprints(artifacts))
        found = out_of_place(artifacts) + differences(first, fingerprints(artifacts))
        told += [f"turn {number}: {what}" for what in found]
    return told


def _beyond(ones: Sequence[Fingerprint], counted: Mapping[str, int]) -> list[Fingerprint]:
    """Those that occur more often than counted."""
    left = dict(counted)
    found = []
    for one in ones:
        if left.get(one.digest, 0) > 0:
            left[one.digest] -= 1
        else:
            found.append(one)
    return found
