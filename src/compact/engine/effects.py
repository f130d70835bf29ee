"""What the engine may ask of the outside. It yields one of these, and the answer is sent in."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from compact.events import Properties, Span, Trace
from compact.summaries.request import SummaryRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Store:
    """Wanted: this text in the archive, durable. The answer is its virtual path."""

    text: str
    tool_name: str
    tool_call_id: str
    trace: Trace | None = None
    """Where what the archive tells of it belongs; set by `compact.engine.spans`."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Wanted: the whole transcript in the archive, durable, as an attempt at the next step. The answer is a `Begun`."""

    items: Sequence[Any]
    dialect: str
    after: int
    """The step whose state the pass works from; 0: none yet."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt at a step: its number if it succeeds, and where the readable transcript will lie."""

    step: int
    history_path: str
    masked: Sequence[Any] = ()
    """The transcript without secrets, one for one."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Wanted: the step, made whole or not at all. The answer is True, or False when another worker was first."""

    summary: Mapping[str, Any]
    state: Mapping[str, Any]
    fingerprints: Mapping[str, str]
    trace: Trace | None = None
    """As in `Store`."""


@dataclass(frozen=True, slots=True)
class Emit:
    """Something happened that others should see."""

    properties: Properties
    payload: Mapping[str, Any] = field(default_factory=dict)
    span: Span | None = None
    """Its place among the others; set by `compact.engine.spans`."""
    is_last: bool = False
    """It ends its run, which has no other event for that."""


@dataclass(frozen=True, slots=True)
class Load:
    """Wanted: what was remembered with the session's newest step. The answer is a `Loaded`, or None before the first."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A session's state as it lies in the archive."""

    step: int
    state: Mapping[str, Any]
    fingerprints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KeepRemoved:
    """Wanted: messages that hygiene took out, durable in the archive."""

    items: Sequence[Any]
    reasons: Sequence[str]
    trace: Trace | None = None
    """As in `Store`."""


Need: TypeAlias = Store | SummaryRequest | Begin | Commit | Emit | Load | KeepRemoved
Asking: TypeAlias = Generator[Need, Any, T]
"""A piece of work that asks for what it needs and returns a T."""
