"""Which result answers which call.

One reply of the model contains a batch of calls; their results follow before the next reply. In most dialects a reply is
one message; in OpenAI Responses it is a run of neighbouring items.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compact.messages.dialects import Dialect
from compact.messages.message import Message, Opaque, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class Found:
    """The place of a call or a result: the index of the message, and of the part inside it."""

    message: int
    part: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The calls of one reply, and the range in which their results may be."""

    start: int
    """The first message of the reply with a call."""
    end: int
    """One past the last message of the reply, where the results should begin."""
    stop: int
    """One past the last message before the next reply."""
    calls: tuple[Found, ...]
    answers: tuple[Found | None, ...]
    """The result that answers each call, or None."""
    repeats: tuple[Found, ...]
    """Results for a call that was already answered."""
    strangers: tuple[Found, ...]
    """Results in the range that answer no call of this batch."""

    @property
    def is_open(self) -> bool:
        """Whether a call still waits for its result."""
        return None in self.answers


def batches(messages: Sequence[Message], dialect: Dialect) -> list[Batch]:
    """All batches of a list, in order."""
    found = []
    index = 0
    while index < len(messages):
        if messages[index].role != "assistant" or not messages[index].calls:
            index += 1
            continue
        end = index + 1
        if dialect.ITEMS_ARE_PARTS:
            while end < len(messages) and messages[end].role == "assistant":
                end += 1
        stop = end
        while stop < len(messages) and messages[stop].role != "assistant":
            stop += 1
        found.append(_match(messages, index, end, stop))
        index = stop
    return found


def in_flight(messages: Sequence[Message], batch: Batch) -> bool:
    """Whether a batch is the newest one and still waits for results: nothing but results follows it.

    Such a batch is never cut or repaired. Calls of an aborted reply are not in flight, since they are never answered.
    """
    return (
        batch.is_open
        and batch.stop == len(messages)
        and all(m.is_only_results for m in messages[batch.end : batch.stop])
        and not any(messages[call.message].aborted for call in batch.calls)
    )


def call_at(messages: Sequence[Message], place: Found) -> ToolCall:
    """The call at this place."""
    part = messages[place.message].parts[place.part]
    assert isinstance(part, ToolCall)
    return part


def result_at(messages: Sequence[Message], place: Found) -> ToolResult:
    """The result at this place."""
    part = messages[place.message].parts[place.part]
    assert isinstance(part, ToolResult)
    return part


def results_in(messages: Sequence[Message], start: int, stop: int) -> Iterator[tuple[Found, ToolResult]]:
    """Every result between two indexes, in order."""
    for index in range(start, stop):
        for place, part in enumerate(messages[index].parts):
            if isinstance(part, ToolResult):
                yield Found(index, place), part


def unsigned_calls(messages: Sequence[Message], dialect: Dialect) -> list[Found]:
    """The calls that Gemini refuses: the first of a reply without a signature, in a turn in which calls are signed."""
    if dialect.NAME != "gemini":
        return []
    start = max((index for index, message in enumerate(messages) if message.starts_turn), default=0)
    firsts = [
        next(
            Found(index, place)
            for place, part in enumerate(messages[index].parts)
            if isinstance(part, ToolCall)
        )
        for index in range(start, len(messages))
        if messages[index].calls
    ]
    unsigned = [place for place in firsts if not call_at(messages, place).signed]
    return unsigned if len(unsigned) < len(firsts) or _signs_calls(messages[start:]) else []


def _signs_calls(messages: Sequence[Message]) -> bool:
    return any(call.signed for message in messages for call in message.calls)


def first_reference(messages: Sequence[Message]) -> int:
    """The index of the first reference to an item that only the provider has. A call behind it may not be visible."""
    for index, message in enumerate(messages):
        if any(isinstance(part, Opaque) and part.type == "item_reference" for part in message.parts):
            return index
    return len(messages)


def has_reference(messages: Sequence[Message], batch: Batch) -> bool:
    """Whether an answer of the batch may be hidden behind a reference to an item that only the provider has."""
    return first_reference(messages[batch.start : batch.stop]) < batch.stop - batch.start


def _match(messages: Sequence[Message], start: int, end: int, stop: int) -> Batch:
    calls = [
        (Found(index, place), part)
        for index in range(start, end)
        for place, part in enumerate(messages[index].parts)
        if isinstance(part, ToolCall)
    ]
    answers: list[Found | None] = [None] * len(calls)
    repeats, strangers = [], []
    by_position = any(call.by_position for _, call in calls)
    by_id: defaultdict[str, list[int]] = defaultdict(list)
    for n, (_, call) in enumerate(calls):
        by_id[call.id].append(n)
    for place, result in results_in(messages, end, stop):
        near = range(len(calls)) if by_position or result.by_position else by_id.get(result.call_id, ())
        named = [n for n in near if _answers(result, calls[n][1])]
        free = [n for n in named if answers[n] is None]
        if free:
            answers[free[0]] = place
        elif named:
            repeats.append(place)
        else:
            strangers.append(place)
    places = tuple(place for place, _ in calls)
    return Batch(start, end, stop, places, tuple(answers), tuple(repeats), tuple(strangers))


def _answers(result: ToolResult, call: ToolCall) -> bool:
    if result.by_position or call.by_position:
        return not result.name or not call.name or result.name == call.name
    return bool(call.id) and result.call_id == call.id
