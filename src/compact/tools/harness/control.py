"""Control: compare the system and task artifacts of a session by hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compact.tools.harness.artifacts import (
    AUTHORITY,
    as_artifacts,
    check_artifact,
    describe,
    digest_of,
    id_of,
)

_SHOWN = 12


class Fingerprint(NamedTuple):
    """A system or task artifact: its kind, its id, and a hash of what the model reads."""

    kind: str
    id: str
    digest: str


def fingerprints(
    artifacts: Iterable[Mapping[str, Any]], ids: Sequence[str] | None = None
) -> list[Fingerprint]:
    """Fingerprint the system and task artifacts, in their order. `ids` names all artifacts if known.

    Raises:
        MessageError: an entry is not an artifact.
    """
    named = _named(artifacts, ids)
    return [Fingerprint(kind, name, digest_of(item, kind)) for item, kind, name in named if kind in AUTHORITY]


def rank(kind: str) -> int:
    """The place of a kind in a context: system, task, everything else."""
    return AUTHORITY.index(kind) if kind in AUTHORITY else len(AUTHORITY)


def in_order(found: Sequence[Fingerprint]) -> list[Fingerprint]:
    """Sort system before task, each in time."""
    return sorted(found, key=lambda one: rank(one.kind))


def differences(expected: Sequence[Fingerprint], found: Sequence[Fingerprint]) -> list[str]:
    """Describe what was pushed out, altered, duplicated, added or moved, a sentence each.

    Only hashes are compared: ids may differ, because a copy may have none.
    """
    wanted, present = Counter(one.digest for one in expected), Counter(one.digest for one in found)
    missing = _beyond(expected, present)
    extra = _beyond(found, wanted)
    problems: list[str] = []
    for one in missing:
        other = next((each for each in extra if each.id == one.id), None) or next(
            (each for each in extra if each.kind == one.kind and each.digest not in wanted), None
        )
        if other is None:
            problems.append(f"{one.id} ({one.kind}) was pushed out of the context")
        else:
            extra.remove(other)
            problems.append(
                f"{one.id} ({one.kind}) was altered: sha256 {one.digest[:_SHOWN]} became {other.digest[:_SHOWN]}"
            )
    for one in extra:
        how = "is duplicated" if one.digest in wanted else "was added"
        problems.append(f"{one.id} ({one.kind}) {how}")
    if not problems:
        problems += [
            f"{after.id} ({after.kind}) was moved: it stands where {before.id} stood"
            for before, after in zip(expected, found, strict=True)
            if before.digest != after.digest
        ]
    return problems


def out_of_place(artifacts: Sequence[Mapping[str, Any]], ids: Sequence[str] | None = None) -> list[str]:
    """Describe every system or task artifact that comes after one of lower rank, a sentence each."""
    problems: list[str] = []
    deepest, behind = 0, ""
    for place, (_, kind, name) in enumerate(_named(artifacts, ids), 1):
        if rank(kind) < deepest:
            problems.append(f"{name} ({kind}) stands at place {place}, behind {behind}")
        elif rank(kind) > deepest:
            deepest, behind = rank(kind), describe(name, kind)
    return problems


def control_changes(turns: Iterable[Any]) -> list[str]:
    """Find where a session lost control: compare each turn's context with the first one's, by hash.

    Args:
        turns: The contexts as sent, one per turn: lists of artifacts, or of messages of any dialect.

    Returns:
        A sentence for each turn and change: pushed out, altered, duplicated, added, moved. Empty if the system and task
        artifacts of the first turn lead every other turn unchanged.

    Raises:
        MessageError: a turn contains something that is not a message.
    """
    return changes_over((list(as_artifacts(turn)), None) for turn in turns)


def changes_over(turns: Iterable[tuple[Sequence[Mapping[str, Any]], Sequence[str] | None]]) -> list[str]:
    """`control_changes` on the artifacts of each turn, with the names that reports give them, if there are any."""
    problems: list[str] = []
    first: list[Fingerprint] | None = None
    for number, (artifacts, names) in enumerate(turns, 1):
        found = fingerprints(artifacts, names)
        if first is None:
            first = in_order(found)
        problems += [
            f"turn {number}: {what}" for what in out_of_place(artifacts, names) + differences(first, found)
        ]
    return problems


def _beyond(ones: Sequence[Fingerprint], counted: Counter[str]) -> list[Fingerprint]:
    """Select those that occur more often than counted."""
    left = Counter(counted)
    found = []
    for one in ones:
        left[one.digest] -= 1
        if left[one.digest] < 0:
            found.append(one)
    return found


def _named(
    artifacts: Iterable[Mapping[str, Any]], ids: Sequence[str] | None
) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Yield each artifact with its kind and id."""
    for index, item in enumerate(artifacts):
        kind = check_artifact(item, index)
        yield item, kind, id_of(item, index, kind) if ids is None else ids[index]
