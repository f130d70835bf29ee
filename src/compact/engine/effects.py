"""What the engine asks of the outside, and the loop that serves it.

The engine does no I/O. It is a generator that yields effects and is sent their answers. `drive` runs such a generator on
the caller's thread, `adrive` on an event loop. Tracing, fault injection, statistics and the processor lock wrap the
`serve` function that they are given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, get_args

from compact.events import Properties, Span, Trace
from compact.summaries.request import SummaryRequest

T = TypeVar("T")
Asking: TypeAlias = Generator[Any, Any, T]
"""Work that yields effects, is sent their answers, and returns a T."""
Serve: TypeAlias = Callable[[Any], Any]
"""Answers one effect. What it raises is raised at the effect's `yield`."""


@dataclass(frozen=True, slots=True)
class Store:
    """Make a text durable in the archive. The answer is its virtual path."""

    text: str
    tool_name: str
    tool_call_id: str
    trace: Trace | None = None
    """The span that the archive's own event belongs to; set by `tracing.spans`."""


@dataclass(frozen=True, slots=True)
class Find:
    """Read a text that was stored, by its virtual path. The answer is None if this session has none there."""

    path: str


@dataclass(frozen=True, slots=True)
class IsStored:
    """Ask whether a text is in the archive as a tool's output of the session. The answer is True or False."""

    text: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Make the whole transcript durable, as an attempt at the next step. The answer is a `Begun`."""

    items: Sequence[Any]
    dialect: str
    after: int
    """The step whose state the pass works from; 0 before the first."""
    given: Sequence[Any] | None = None
    """The transcript as the host gave it, if repairs or offloads changed it on the way to `items`."""
    own: frozenset[str] = frozenset()
    """Hashes of the summaries in it that compact wrote. They quote people, so nothing that a tool taught masks them."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt at a step: its number if it succeeds, and where people can read the transcript."""

    step: int
    history_path: str
    masked: Sequence[Any] = ()
    """The transcript without secrets, one for one."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the step, whole or not at all. The answer is True, or False if another worker committed it first."""

    summary: Mapping[str, Any]
    state: Mapping[str, Any]
    fingerprints: Mapping[str, str]
    trace: Trace | None = None
    """As in `Store`."""


@dataclass(frozen=True, slots=True)
class Load:
    """Read the state of the session's newest step. The answer is a `Loaded`, or None before the first step."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A session's state in the archive."""

    step: int
    state: Mapping[str, Any]
    fingerprints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LastCalled:
    """Ask the session's log when the session was last called, by any worker. The answer is a `datetime`, or None."""


@dataclass(frozen=True, slots=True)
class Collect:
    """Take what a pass in the background has prepared, and wait for it if it is still being made.

    The answer is a `background.PreparedPass`, or None if nothing came of it. The events up to the next `compact.finished` are those
    of that pass.
    """


@dataclass(frozen=True, slots=True)
class LoadPins:
    """Read what the host pinned and unpinned in the session, oldest first.

    The answer is a sequence of mappings: `{"pin": entry}` with an entry as `ledger.entry.to_json` writes it, `{"unpin": id}`, or
    `{"reset": step}`, which takes back what was pinned before. See `Archive.pins`.
    """


@dataclass(frozen=True, slots=True)
class KeepRemoved:
    """Make messages durable that hygiene removed, or that the ledger has no room for. The answer is their virtual path."""

    items: Sequence[Any]
    reasons: Sequence[str]
    trace: Trace | None = None
    """As in `Store`."""


@dataclass(frozen=True, slots=True)
class Emit:
    """Record an event."""

    properties: Properties
    payload: Mapping[str, Any] = field(default_factory=dict)
    span: Span | None = None
    """Its place among the other events; set by `tracing.spans`."""
    is_last: bool = False
    """It ends its run, which has no other event for that."""


Effect: TypeAlias = (
    Store
    | Find
    | IsStored
    | SummaryRequest
    | Begin
    | Commit
    | Emit
    | Load
    | LastCalled
    | LoadPins
    | KeepRemoved
    | Collect
)
"""Everything that the engine may yield. A `SummaryRequest` is answered by a `Reply`, or by its text alone."""


EFFECTS: tuple[type, ...] = get_args(Effect)


class Paused(BaseException):
    """Carries the effect that `drive` did not serve. Not an error, so nothing on the way may handle it as one."""

    def __init__(self, effect: Any) -> None:
        self.effect = effect


def drive(
    asking: Asking[T], serve: Serve, *, resume: Any = None, pause: Callable[[Any], bool] | None = None
) -> T:
    """Run a generator to its end on this thread and return its result.

    `resume` is the effect of an earlier `Paused`.

    Raises:
        Paused: `pause` is true for an effect. The generator waits for its answer.
        Exception: what the generator raises. It sees what `serve` raises first.
    """
    try:
        effect = next(asking) if resume is None else resume
        while pause is None or not pause(effect):
            try:
                answer = serve(effect)
            except Exception as problem:
                effect = asking.throw(problem)
            else:
                effect = asking.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
    except BaseException:
        asking.close()
        raise
    raise Paused(effect)


async def adrive(asking: Asking[T], serve: Callable[[Any], Awaitable[Any]]) -> T:
    """Run a generator to its end on the event loop. See `drive`."""
    try:
        effect = next(asking)
        while True:
            try:
                answer = await serve(effect)
            except Exception as problem:
                effect = asking.throw(problem)
            else:
                effect = asking.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
    except BaseException:
        asking.close()
        raise
