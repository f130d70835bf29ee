"""Bring calls and results together again.

Calls of aborted replies are stripped; a call that was never answered gets a result that says so; results without a call
and second results are dropped; results that stand elsewhere before the next reply move up, in the order of their calls;
an id that was used before is replaced on both sides. The newest batch, while it is in flight, stays open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from compact.messages import dialects
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import plain
from compact.messages.hygiene.sanitizing import safe_id
from compact.messages.hygiene.work import Removed, settled, without_loose_ends
from compact.messages.legality import structure_violations
from compact.messages.markers import GAP
from compact.messages.message import Message, Part, Reasoning, Text, ToolCall, ToolResult
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
_ROUNDS = 4
"""Taking something out can bring together what was apart; it settles after a round or two."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The repaired list and what it took."""

    messages: Any
    added: int = 0
    """Synthetic results for calls that were never answered."""
    dropped_duplicates: int = 0
    """Results for a call that was already answered."""
    dropped_orphans: int = 0
    """Results without a call."""
    moved: int = 0
    """Results that stood in the wrong place."""
    removed: tuple[Removed, ...] = ()
    """The messages that were dropped or changed, as they were."""


def repair_tool_pairs(messages: Sequence[Any], dialect: str | None = None) -> Repair:
    """The list with every call answered once, directly behind its reply, in order; legal input is the same object.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    known, neutral = dialects.read(messages, dialect)
    outcome = repaired(neutral, known)
    return replace(outcome, messages=settled(messages, neutral, outcome.messages, known))


def repaired(messages: list[Message], dialect: Dialect, waits: bool = True) -> Repair:
    """`repair_tool_pairs` on neutral messages; the very same list when it is legal.

    `waits` False: nobody waits for results any more, and a newest batch that is open is answered like any other.
    """
    if dialect.NAME == "harness":
        return Repair(messages)
    if not any(map(_needs_mending, messages)) and not structure_violations(messages, dialect, waits):
        return Repair(messages)
    done = _repaired_once(messages, dialect, waits)
    for _ in range(_ROUNDS):
        if not structure_violations(done.messages, dialect, waits):
            break
        more = _repaired_once(done.messages, dialect, waits)
        done = Repair(
            more.messages,
            added=done.added + more.added,
            dropped_duplicates=done.dropped_duplicates + more.dropped_duplicates,
            dropped_orphans=done.dropped_orphans + more.dropped_orphans,
            moved=done.moved + more.moved,
        )
    intact = {id(message) for message in done.messages}
    lost = [message for message in messages if id(message) not in intact]
    removed = tuple(Removed(m.origin, "its tool calls and results did not fit together") for m in lost)
    return replace(done, removed=removed)


def _repaired_once(messages: list[Message], dialect: Dialect, waits: bool) -> Repair:
    bench = _Bench(dialect, messages, waits)
    for batch in batches(bench.pieces, dialect):
        bench.pass_on(batch.start)
        bench.mend(batch)
    bench.pass_on(len(bench.pieces))
    return Repair(
        bench.assembled(),
        added=bench.added,
        dropped_duplicates=bench.dropped_duplicates,
        dropped_orphans=bench.dropped_orphans,
        moved=bench.moved,
    )


def _needs_mending(message: Message) -> bool:
    """Whether a message must change although the order is right: calls never run, results with a blank name."""
    return (message.aborted and bool(message.calls)) or any(map(_is_blank, message.results))


def _is_blank(result: ToolResult) -> bool:
    return result.name is not None and not result.name.strip()


class _Bench:
    """A list taken apart into pieces, each with one result or none, and put together again."""

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
        self.added = self.dropped_duplicates = self.dropped_orphans = self.moved = 0
        for index, message in enumerate(messages):
            for piece in _split(message, dialect):
                self.pieces.append(piece)
                self.sources.append(index)
        self.reference = first_reference(self.pieces)

    def pass_on(self, stop: int) -> None:
        """Take over everything up to the next batch. Results here have no call before them."""
        for index in range(self.position, stop):
            piece = self.pieces[index]
            if piece.results and index < self.reference:
                self._drop(piece.results[0])
            else:
                self.done.append((piece, self.sources[index]))
        self.position = stop

    def mend(self, batch: Batch) -> None:
        """Take over one reply, then its results in order, then whatever else stood among them."""
        waiting = (self.waits and in_flight(self.pieces, batch)) or has_reference(self.pieces, batch)
        names = [self._fresh_id(call_at(self.pieces, place)) for place in batch.calls]
        renamed = dict(zip(batch.calls, names, strict=True))
        for index in range(batch.start, batch.end):
            self.done.append((_with_ids(self.pieces[index], index, renamed), self.sources[index]))
        self.moved += _out_of_place(self.pieces, batch)
        for place, answer, name in zip(batch.calls, batch.answers, names, strict=True):
            call = call_at(self.pieces, place)
            if answer is not None:
                self.done.append(self._answer(answer, call, name))
            elif not waiting:
                self.added += 1
                self.done.append((_missing_result(replace(call, id=name), self.dialect), None))
        for place in batch.repeats:
            self._drop(result_at(self.pieces, place))
        answered = {place.message for place in (*batch.answers, *batch.repeats) if place is not None}
        for index in range(batch.end, batch.stop):
            piece = self.pieces[index]
            if index in answered:
                continue
            if piece.results and index < self.reference:
                self._drop(piece.results[0])
            else:
                self.done.append((piece, self.sources[index]))
        self.position = batch.stop

    def assembled(self) -> list[Message]:
        """The finished pieces as messages: those of one source together, and whole sources as they were."""
        groups: list[list[tuple[Message, int | None]]] = []
        for entry in self.done:
            if groups and self._belongs_together(groups[-1][-1], entry):
                groups[-1].append(entry)
            else:
                groups.append([entry])
        messages = [self._joined(group) for group in groups]
        if self.dialect.NAME == "responses":
            return _without_lonely_reasoning(messages)
        return _alternating(messages) if self.dialect.RESULTS_IN_USER else messages

    def _belongs_together(self, left: tuple[Message, int | None], right: tuple[Message, int | None]) -> bool:
        if self.dialect.RESULTS_IN_USER and left[0].role == right[0].role != "system":
            return left[1] == right[1] or _mergeable(left[0], right[0])
        return left[1] is not None and left[1] == right[1]

    def _joined(self, group: list[tuple[Message, int | None]]) -> Message:
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
            occurrence += 1  # a list that was repaired before holds the first of these already
        self.taken.add(fresh)
        return fresh

    def _answer(self, place: Found, call: ToolCall, call_id: str) -> tuple[Message, int | None]:
        piece, result = self.pieces[place.message], result_at(self.pieces, place)
        self.answered.add(result.call_id)
        mended = result
        if not result.by_position and result.call_id != call_id:
            mended = replace(mended, call_id=call_id)
        if _is_blank(result):
            mended = replace(mended, name=call.name or "unknown")
        return (piece if mended is result else piece.with_parts((mended,))), self.sources[place.message]

    def _drop(self, result: ToolResult) -> None:
        if result.call_id in self.answered:
            self.dropped_duplicates += 1
        else:
            self.dropped_orphans += 1


def _mergeable(left: Message, right: Message) -> bool:
    """Whether two neighbours can become one message: neither is protected, and no mark or key of one is lost."""
    if left.protected or right.protected:
        return False
    if left.role == "user" and bool(left.results) != bool(right.results) and (left.origin and right.origin):
        return False  # beside a tool's result, what a person wrote would no longer be theirs
    if left.origin is None or right.origin is None:
        return True
    if (left.injected, left.aborted) != (right.injected, right.aborted):
        return False
    return _other_keys(left) == _other_keys(right)


def _other_keys(message: Message) -> dict[str, Any]:
    return {key: value for key, value in plain(message.origin).items() if key not in ("role", "content")}


def _alternating(messages: list[Message]) -> list[Message]:
    """The list with a marker wherever two messages of one role stand side by side, or the first is not the user's."""
    found: list[Message] = []
    before: str | None = None
    for message in messages:
        if message.role == before or (before is None and message.role == "assistant"):
            other = "user" if message.role == "assistant" else "assistant"
            found.append(Message(other, (Text(GAP),), injected=True))
        found.append(message)
        before = before if message.role == "system" else message.role
    return found


def _split(message: Message, dialect: Dialect) -> list[Message]:
    """The pieces of a message: one for each result, one for the rest; a message in one piece is itself."""
    if message.aborted and message.calls:
        spoken = tuple(part for part in message.parts if not isinstance(part, ToolCall))
        stripped = without_loose_ends(message.with_parts(spoken), dialect)
        return [] if stripped is None else [stripped]
    if not message.results or len(message.parts) == 1:
        return [message]
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    pieces = [message.with_parts((result,)) for result in message.results]
    return [*pieces, message.with_parts(rest)] if rest else pieces


def _with_ids(message: Message, index: int, names: dict[Found, str]) -> Message:
    parts: list[Part] = []
    for place, part in enumerate(message.parts):
        name = names.get(Found(index, place))
        if isinstance(part, ToolCall) and name is not None and name != part.id:
            parts.append(replace(part, id=name))
        else:
            parts.append(part)
    same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if same else message.with_parts(tuple(parts))


def _out_of_place(pieces: Sequence[Message], batch: Batch) -> int:
    """How many answers stand behind something else than an earlier answer of their batch."""
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
