"""Bring tool calls and their results together again.

- Calls of aborted replies are removed.
- A call that was never answered gets a result that says so.
- Results without a call, and second results, are dropped.
- Results that come later, but before the next reply, move up behind their calls, in the order of the calls.
- An id that was used before is replaced in call and result.
- The newest batch stays open while it is in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compact.messages import dialects
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import plain
from compact.messages.hygiene.sanitizing import safe_id
from compact.messages.hygiene.signatures import sign_calls
from compact.messages.hygiene.work import Removed, without_loose_ends, write_back
from compact.messages.legality import fill_role_gaps, fits_call, lacks_name, structure_violations
from compact.messages.message import Message, Part, Reasoning, Text, ToolCall, ToolResult, is_cache_point
from compact.messages.pairs import (
    Batch,
    Found,
    batches,
    call_at,
    first_reference,
    has_reference,
    in_flight,
    result_at,
)

MISSING = "[missing tool result: this call was never answered, its result is not available]"
_ROUNDS = 5
"""Removing something can bring together what was apart. One or two rounds are enough in practice."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The repaired list, and what was repaired."""

    messages: Any
    added: int = 0
    """Synthetic results for calls that were never answered."""
    dropped_duplicates: int = 0
    """Results for a call that was already answered."""
    dropped_orphans: int = 0
    """Results without a call."""
    moved: int = 0
    """Results that were in the wrong place."""
    removed: tuple[Removed, ...] = ()
    """The messages that were dropped or changed, as they were before."""


def repair_tool_pairs(messages: Sequence[Any], dialect: str | None = None) -> Repair:
    """Make every call answered exactly once, directly behind its reply, in order. A legal list is returned unchanged.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    known, neutral = dialects.read(messages, dialect)
    repair = repair_neutral(neutral, known)
    return replace(repair, messages=write_back(messages, neutral, repair.messages, known))


def repair_neutral(messages: list[Message], dialect: Dialect, waits: bool = True) -> Repair:
    """`repair_tool_pairs` on neutral messages.

    With `waits` False, no more results are expected: an open newest batch is answered like any other.
    """
    if dialect.NAME == "harness":
        return Repair(messages)
    if not any(_needs_mending(message, dialect) for message in messages) and not structure_violations(
        messages, dialect, waits
    ):
        return Repair(messages)
    done, counts = messages, Counter[str]()
    if dialect.ITEMS_ARE_PARTS:
        done = _with_late_results(messages, dialect)
        counts["moved"] = sum(new is not old for new, old in zip(done, messages, strict=True) if new.results)
    for _ in range(_ROUNDS):
        bench = _Bench(dialect, done, waits)
        done = bench.repair()
        counts += bench.counts
        if not structure_violations(done, dialect, waits):
            break
    intact = {id(message) for message in done}
    lost = [message for message in messages if id(message) not in intact]
    return Repair(
        done,
        added=counts["added"],
        dropped_duplicates=counts["duplicates"],
        dropped_orphans=counts["orphans"],
        moved=counts["moved"],
        removed=tuple(Removed(m.origin, "its tool calls and results did not fit together") for m in lost),
    )


def _needs_mending(message: Message, dialect: Dialect) -> bool:
    """Whether a message must change although the order is right: its calls were never run, or a result lacks its name."""
    if message.aborted and message.calls:
        return True
    return any(lacks_name(result, dialect) for result in message.results)


class _Bench:
    """Takes a list apart into pieces with at most one result each, and puts them together in legal order."""

    def __init__(self, dialect: Dialect, messages: Sequence[Message], waits: bool) -> None:
        self.dialect = dialect
        self.waits = waits
        self.messages = messages
        self.pieces: list[Message] = []
        self.sources: list[int] = []
        self.done: list[tuple[Message, int | None]] = []
        self.position = 0
        self.uses: dict[str, int] = {}
        self.answered: set[str] = set()
        self.taken = {call.id for message in messages for call in message.calls}
        self.counts = Counter[str]()
        for index, message in enumerate(messages):
            for piece in _split(message, dialect):
                self.pieces.append(piece)
                self.sources.append(index)
        self.reference = first_reference(self.pieces)

    def repair(self) -> list[Message]:
        """Return the messages with every reply directly followed by its results."""
        for batch in batches(self.pieces, self.dialect):
            self._copy(range(self.position, batch.start))
            self._repair_batch(batch)
            self.position = batch.stop
        self._copy(range(self.position, len(self.pieces)))
        return self._assemble()

    def _copy(self, indexes: Iterable[int]) -> None:
        """Copy pieces that belong to no batch. A result among them has no call and is dropped."""
        for index in indexes:
            piece = self.pieces[index]
            if piece.results and not self._is_of_hidden_call(index, piece.results[0]):
                self._drop(piece.results[0])
            else:
                self.done.append((piece, self.sources[index]))

    def _is_of_hidden_call(self, index: int, result: ToolResult) -> bool:
        """Whether a result answers a call that only the provider has. It is then the answer to it."""
        known = {"", *self.taken, *self.answered}
        is_hidden = index >= self.reference and result.call_id not in known
        self.answered |= {result.call_id} if is_hidden else set()
        return is_hidden

    def _repair_batch(self, batch: Batch) -> None:
        """Copy one reply, then its results in order, then whatever else was between them."""
        waiting = (self.waits and in_flight(self.pieces, batch)) or has_reference(self.pieces, batch)
        names = [self._fresh_id(call_at(self.pieces, place)) for place in batch.calls]
        renamed = dict(zip(batch.calls, names, strict=True))
        for index in range(batch.start, batch.end):
            self.done.append((_with_ids(self.pieces[index], index, renamed), self.sources[index]))
        self.counts["moved"] += _out_of_place(self.pieces, batch)
        for place, answer, name in zip(batch.calls, batch.answers, names, strict=True):
            call = call_at(self.pieces, place)
            if answer is not None:
                self.done.append(self._answer(answer, call, name))
            elif not waiting:
                self.counts["added"] += 1
                self.done.append((_missing_result(replace(call, id=name), self.dialect), None))
        for place in batch.repeats:
            self._drop(result_at(self.pieces, place))
        answered = {place.message for place in (*batch.answers, *batch.repeats) if place is not None}
        self._copy(index for index in range(batch.end, batch.stop) if index not in answered)

    def _assemble(self) -> list[Message]:
        """Join the pieces of one source again. A source that is whole is the original message."""
        groups: list[list[tuple[Message, int | None]]] = []
        for entry in self.done:
            if groups and self._belongs_together(groups[-1][-1], entry):
                groups[-1].append(entry)
            else:
                groups.append([entry])
        messages = [self._join(group) for group in groups]
        if self.dialect.NAME == "responses":
            return _without_lonely_reasoning(messages)
        return sign_calls(fill_role_gaps(messages, self.dialect), self.dialect)

    def _belongs_together(self, left: tuple[Message, int | None], right: tuple[Message, int | None]) -> bool:
        if self.dialect.RESULTS_IN_USER and left[0].role == right[0].role != "system":
            return left[1] == right[1] or _mergeable(left[0], right[0])
        return left[1] is not None and left[1] == right[1]

    def _join(self, group: list[tuple[Message, int | None]]) -> Message:
        pieces = [piece for piece, _ in group]
        source = next((number for _, number in group if number is not None), None)
        if source is None and len(pieces) == 1:
            return pieces[0]
        parts = tuple(part for piece in pieces for part in piece.parts)
        base = pieces[0] if source is None else self.messages[source]
        if len(parts) == len(base.parts) and all(a is b for a, b in zip(parts, base.parts, strict=True)):
            return base
        return replace(base.with_parts(parts), protected=any(piece.protected for piece in pieces))

    def _fresh_id(self, call: ToolCall) -> str:
        if call.by_position:
            return call.id
        occurrence = self.uses[call.id] = self.uses.get(call.id, 0) + 1
        if occurrence == 1:
            return call.id
        while (fresh := safe_id(call.id, occurrence)) in self.taken:
            occurrence += 1  # a list that was repaired before already has the first of these
        self.taken.add(fresh)
        return fresh

    def _answer(self, place: Found, call: ToolCall, call_id: str) -> tuple[Message, int | None]:
        piece, result = self.pieces[place.message], result_at(self.pieces, place)
        self.answered.add(result.call_id)
        mended = result
        if not result.by_position and result.call_id != call_id:
            mended = replace(mended, call_id=call_id)
        if not fits_call(replace(call, id=call_id), mended, self.dialect):
            mended = replace(mended, call_id=call_id, name=call.name, by_position=not call_id)
        if lacks_name(result, self.dialect):
            mended = replace(mended, name=call.name or "unknown")
        parts = tuple(mended if part is result else part for part in piece.parts)
        return (piece if mended is result else piece.with_parts(parts)), self.sources[place.message]

    def _drop(self, result: ToolResult) -> None:
        self.counts["duplicates" if result.call_id in self.answered else "orphans"] += 1


def _with_late_results(messages: list[Message], dialect: Dialect) -> list[Message]:
    """The list with each result behind its call, where the model went on before the call was answered.

    In a list of items a reply ends with the next word of anybody, and the provider takes a result anywhere behind its call.
    """
    ends = {
        call_at(messages, place).id: batch.end
        for batch in batches(messages, dialect)
        for place, answer in zip(batch.calls, batch.answers, strict=True)
        if answer is None and not call_at(messages, place).by_position
    }
    late: dict[int, int] = {}
    for index, message in enumerate(messages):
        for result in message.results:
            end = ends.get(result.call_id)
            if end is not None and index >= end:
                late[index] = ends.pop(result.call_id)
    if not late:
        return messages
    moved = {end: [messages[n] for n, each in late.items() if each == end] for end in late.values()}
    found: list[Message] = []
    for index, message in enumerate(messages):
        found += moved.get(index, ())
        found += [] if index in late else [message]
    return found


def _mergeable(left: Message, right: Message) -> bool:
    """Whether two neighbours can become one message: neither is protected, and no mark or key is lost."""
    if left.protected or right.protected:
        return False
    if left.role == "user" and bool(left.results) != bool(right.results) and (left.origin and right.origin):
        return False  # beside a tool's result, a person's words would no longer start a turn
    if left.origin is None or right.origin is None:
        return True
    if (left.injected, left.aborted) != (right.injected, right.aborted):
        return False
    return _other_keys(left) == _other_keys(right)


def _other_keys(message: Message) -> dict[str, Any]:
    return {
        key: value for key, value in plain(message.origin).items() if key not in ("role", "content", "parts")
    }


def _split(message: Message, dialect: Dialect) -> list[Message]:
    """Split a message into one piece for each result and one for the rest. A message in one piece is not copied."""
    if message.aborted and message.calls:
        spoken = tuple(part for part in message.parts if not isinstance(part, ToolCall))
        stripped = without_loose_ends(message.with_parts(spoken), dialect)
        return [] if stripped is None else [stripped]
    if not message.results or len(message.parts) == 1:
        return [message]
    pieces: list[list[Part]] = []
    rest: list[Part] = []
    place: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            # A cache point belongs to what stands before it; one at the very beginning, to the first result.
            place = [*([] if pieces or rest else place), part]
            pieces.append(place)
        elif is_cache_point(part):
            place.append(part)
        else:
            rest += [*([] if pieces or rest else place), part]
            place = rest
    return [message.with_parts(tuple(parts)) for parts in (*pieces, rest) if parts]


def _with_ids(message: Message, index: int, names: dict[Found, str]) -> Message:
    parts: list[Part] = []
    for place, part in enumerate(message.parts):
        name = names.get(Found(index, place), "")
        if isinstance(part, ToolCall) and name not in ("", part.id):
            part = replace(part, id=name)  # noqa: PLW2901
        parts.append(part)
    same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if same else message.with_parts(tuple(parts))


def _out_of_place(pieces: Sequence[Message], batch: Batch) -> int:
    """Count the answers that do not follow their reply or an earlier answer of their batch directly."""
    spoken = next((n for n in range(batch.end, batch.stop) if not pieces[n].results), batch.stop)
    count = 0
    highest = -1
    for answer in batch.answers:
        if answer is None:
            continue
        if answer.message > spoken or answer.message < highest:
            count += 1
        highest = max(highest, answer.message)
    return count


def _missing_result(call: ToolCall, dialect: Dialect) -> Message:
    result = ToolResult(
        call.id, (Text(MISSING),), name=call.name or "unknown", is_error=True, by_position=call.by_position
    )
    return Message("user" if dialect.RESULTS_IN_USER else "tool", (result,))


def _without_lonely_reasoning(messages: list[Message]) -> list[Message]:
    kept: list[Message] = []
    for message in reversed(messages):
        followed = bool(kept) and kept[-1].role == "assistant"
        if followed or not any(isinstance(part, Reasoning) for part in message.parts):
            kept.append(message)
    return kept[::-1]
