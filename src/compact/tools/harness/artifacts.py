"""Artifacts: the parts of a session as `{"kind", "content", ...}`, and what is remembered of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import inf
from typing import Any

from compact.errors import MessageError
from compact.messages import dialects
from compact.messages.dialects import harness as dialect
from compact.messages.dialects.wire import plain
from compact.tools.harness.from_messages import MessageArtifact, artifacts_of

AUTHORITY = ("system", "task")
"""The kinds that rule a session, in the order in which they come before everything else."""

_TYPO = 0.85
"""How similar to a field of an artifact another field may be before it is taken for a typo."""


class ArtifactStream:
    """Artifacts that are read anew on each iteration, so that a large file is never in memory as a whole."""

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Iterate from the first artifact."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Entry:
    """One artifact without its content, so that a file of any size can be decided on."""

    index: int
    """Its index in the session."""
    id: str
    """Its name in reports: unique, and without personal data."""
    kind: str
    tokens: int
    """Its size in the context, masked."""
    digest: str
    """A hash of its kind, title and content, as they were given."""
    role: str | None = None
    priority: float = 0
    authority: Any = None
    masked: int = 0
    """How many spans were masked."""
    is_empty: bool = False
    """Whether it is a message without a word."""

    @property
    def is_conversation(self) -> bool:
        """Whether a person or the model says it. A tool's words in a message are an output."""
        return self.kind == "message" and self.role not in ("tool", "function")


@dataclass(frozen=True, slots=True)
class Choice:
    """An artifact that a heuristic wants: whether it must stay, and why."""

    entry: Entry
    must: bool
    reason: str


def as_artifacts(given: Any, *, system: Any = None) -> Iterable[Mapping[str, Any]]:
    """Convert a list of artifacts, `{"artifacts": [...]}`, or messages of any dialect to artifacts.

    A message becomes one artifact for each of its parts: its text a `message` (or `system`), each call a `tool_call`, each
    result a `tool_output`. `system` is a system prompt beside the messages. `to_request` is the way back.

    Raises:
        MessageError: an entry is none of these; names the index.
    """
    if isinstance(given, ArtifactStream):
        return given
    if isinstance(given, Mapping):
        given = given.get("artifacts", given)
    if isinstance(given, Iterator):
        given = list(given)
    dialects.require_list(given)
    if not _are_artifacts(given):
        return artifacts_of(given, system)
    if system:
        raise MessageError(
            "a system prompt beside artifacts has no place",
            hint="Put it into the list: {'kind': 'system', 'content': ...}",
        )
    return [_mapping(item, index) for index, item in enumerate(given)]


def check_artifact(item: Mapping[str, Any], index: int) -> str:
    """Check an artifact and return its kind.

    Raises:
        MessageError: a field has a wrong type or value, or its name looks like a typo; says which.
    """
    try:
        kind = dialect.kind_of(item)
        _check_fields(item, kind)
    except ValueError as problem:
        raise _refuse(index, str(problem)) from problem
    return kind


_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "title": ((str,), "text"),
    "role": ((str,), "text"),
    "id": ((str, int), "text or a whole number"),
    "priority": ((int, float), "a number"),
    "meta": ((Mapping,), "a mapping"),
}


def _check_fields(item: Mapping[str, Any], kind: str) -> None:
    content, priority = item.get("content"), item.get("priority") or 0
    if not isinstance(content, str):
        raise ValueError(f"its 'content' is {type(content).__name__}, not text")
    for name, value in item.items():
        if name in _TYPES:
            types, allowed = _TYPES[name]
            if value is not None and (isinstance(value, bool) or not isinstance(value, types)):
                raise ValueError(f"its {name!r} is {type(value).__name__}, not {allowed}")
        elif name not in dialect.FIELDS and (meant := _typo_of(str(name))):
            raise ValueError(f"it has no field {str(name)[:40]!r}; did you mean {meant!r}?")
    if priority != priority or abs(priority) == inf:
        raise ValueError(f"its 'priority' is {priority}, not a finite number")
    if kind in AUTHORITY and not content.strip():
        raise ValueError(f"its 'content' is empty, and a {kind} artifact rules the session")


@lru_cache(maxsize=256)
def _typo_of(name: str) -> str | None:
    return next(iter(get_close_matches(name.lower(), dialect.FIELDS, n=1, cutoff=_TYPO)), None)


def _refuse(index: int, why: str) -> MessageError:
    return MessageError(
        f"artifacts[{index}] is not an artifact: {why}",
        hint="Expected {'kind': 'system' | 'task' | 'message' | 'tool_output' | ..., 'content': text}",
        index=index,
        dialect="harness",
        reason=why,
    )


def id_of(item: Mapping[str, Any], index: int, kind: str) -> str:
    """The artifact's own id, its message's name, or a name made of its kind and index."""
    given = item.name if isinstance(item, MessageArtifact) else item.get("id")
    return f"{kind}-{index}" if given is None else str(given)


def describe(name: str, kind: str) -> str:
    """Name an artifact in a sentence. A kind of the host's own may hold anything, so it is not repeated."""
    return f"{name} ({kind})" if kind in dialect.KINDS else name


def digest_of(item: Mapping[str, Any], kind: str) -> str:
    """Hash what the model reads of an artifact. Two with the same hash look the same to it."""
    words = "\x00".join((kind, item.get("title") or "", item["content"]))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


def _are_artifacts(items: Iterable[Any]) -> bool:
    """Decide by the first entry. An empty list counts as artifacts."""
    for item in items:
        if isinstance(item, Mapping):
            return "kind" in item or bool(dialect.claim(item))
        try:
            return "kind" in plain(item)
        except ValueError:
            return False  # the reader of messages has the better error
    return True


def _mapping(item: Any, index: int) -> Mapping[str, Any]:
    try:
        return plain(item)
    except ValueError as problem:
        raise _refuse(index, str(problem)) from problem
