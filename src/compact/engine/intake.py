"""The first look at a host's messages: which are new, are they legal, and is one of them huge.

Only what is new is looked at. A session that was legal a moment ago is checked from its newest reply on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.engine.context import Desk, Row
from compact.engine.effects import Asking, Emit, IsStored, KeepRemoved
from compact.engine.stages.offload import is_large, is_long, offload_row
from compact.engine.thinking import BetweenPasses, ThinkingRules
from compact.errors import ArchiveError, MessageError
from compact.events import Failure
from compact.messages import Message, dialects, hygiene
from compact.messages.cache_marks import (
    MAX_MARKS,
    count_marks,
    has_mark,
    limit_marks,
    mark_of,
    with_mark,
    without_marks,
)
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import begins_with, is_plain, longest_text, plain
from compact.messages.legality import item_id, violations_in
from compact.tokens import Meter
from compact.tokens.memo import Running


@dataclass(frozen=True, slots=True)
class Working:
    """The context of a session: its messages, and the index of each in the host's list."""

    items: Sequence[Any]
    sources: Sequence[int | None]
    """None: compact wrote the message."""
    bare: frozenset[int] = frozenset()
    """Indices in the host's list of messages that stand here without their signed thinking."""


_UNUSABLE = "its thinking cannot be used any more: something before it changed, or another model is asked"


@dataclass(frozen=True, slots=True)
class Tools:
    """What the intake works with in one call."""

    meter: Meter
    desk: Callable[[Dialect], Desk]
    max_turns: int | None
    beside: tuple[Any, ...] = ()
    """What is sent beside the messages and may carry cache marks: the system prompt, the tools."""
    sent: Sequence[Any] = ()
    """What the call before returned; empty if that is not known."""
    keeps_sent: bool = False
    """Whether nothing that the model has seen may be edited between passes."""
    moves_arriving: bool = True
    """Whether a huge result goes to the archive when it is first seen."""


class Intake:
    """What a session remembers of the messages that it has seen. Only the run that holds the session's lane uses it."""

    def __init__(
        self,
        moved: Mapping[int, tuple[Any, Any]] | None = None,
        thinking: BetweenPasses | None = None,
    ) -> None:
        self.thinking = thinking or BetweenPasses()
        """What of the session's thinking was taken out between passes."""
        self.counts = Running()
        """What the session's list was counted to have."""
        self._items: list[Any] = []
        """The newest list that was found legal."""
        self._dialect: Dialect | None = None
        self._calls: set[str] = set()
        """Call ids in it, and ids of items: none may be used twice."""
        self._resume = 0
        """The index of the message before its newest reply. Checking resumes there."""
        self._has_marks = False
        """Whether the host sets cache marks."""
        self._moved = dict(moved or {})
        """Results that are in the archive, by their index in the host's list, and the pointers that stand for them.

        Both without cache marks, which the host moves."""

    def renew(self) -> Intake:
        """The intake for the next run, when a run that lost the lane may still be using this one."""
        return Intake(self._moved, self.thinking.renew())

    def take(self, working: Working, named: str | None, tools: Tools) -> Asking[tuple[Working, Dialect]]:
        """Return a legal context without huge results, and its dialect.

        What hygiene removes and what is offloaded is durable first. What the archive does not take stays as it is.

        Raises:
            MessageError: an entry is not a message, or not of the dialect that was named.
        """
        working = self._limit_marks(working, tools)
        items = working.items
        seen = len(self._items) if self._items and begins_with(items, self._items) else 0
        if seen and tools.max_turns is None and self._is_plain_since_reply(items, seen, named):
            assert self._dialect is not None
            return working, self._dialect
        seen, dialect = self._recognise(items, seen, named, tools)
        working = yield from self._clean(working, dialect, seen, tools)
        working = yield from self._offload(working, dialect, seen, tools)
        return self._limit_marks(working, tools), dialect

    def is_legal(self, items: Sequence[Any], dialect: Dialect) -> bool:
        """Whether `violations` would find nothing in a list. What was legal before is not looked at again.

        Raises:
            MessageError: an entry is not a message.
        """
        seen = len(self._items) if self._items and begins_with(items, self._items) else 0
        return self._is_legal(items, dialect, seen)

    def settle_thinking(
        self, working: Working, dialect: Dialect, rules: ThinkingRules, tools: Tools
    ) -> Asking[Working]:
        """The context without the thinking that its model would refuse or does not read.

        What goes is durable first. If the archive does not take it, it stays.
        """
        found, new = self.thinking.settle(
            working.items, working.sources, tools.sent, tools.beside, dialect, rules
        )
        if new:
            try:
                yield KeepRemoved([working.items[n] for n in new], [_UNUSABLE] * len(new))
            except ArchiveError as problem:
                yield Emit(Failure.of(problem, "none"))
                found = {n: bare for n, bare in found.items() if n not in new}
            else:
                self.thinking.remember(working.items, working.sources, new)
        if not found:
            return working
        bare = {source for n in found if (source := working.sources[n]) is not None}
        items = [found.get(n, item) for n, item in enumerate(working.items)]
        return Working(items, working.sources, working.bare | bare)

    # --- cache marks

    def _limit_marks(self, working: Working, tools: Tools) -> Working:
        """No more cache marks than the provider takes. A list without marks is looked at once."""
        items = working.items
        if not self._has_marks:
            fresh = items[len(self._items) :] if begins_with(items, self._items) else items
            self._has_marks = any(not is_plain(item) and has_mark(item) for item in fresh)
        if not self._has_marks:
            return working
        kept = limit_marks(items, MAX_MARKS - count_marks(*tools.beside))
        return working if kept is items else Working(kept, working.sources, working.bare)

    # --- what is new

    def _is_plain_since_reply(self, items: Sequence[Any], seen: int, named: str | None) -> bool:
        """Whether only plain texts follow the message before the newest reply, so that no rule can object.

        This is the common case of a conversation. It saves reading and checking what a glance shows to be legal.
        """
        dialect, first = self._dialect, self._resume + 1 if self._resume else 0
        if (
            dialect is None
            or not dialect.TAKES_PLAIN
            or self._moved
            or first >= seen
            or named not in (None, dialect.NAME)
        ):
            return False
        resume, before = self._resume, items[first - 1] if first else None
        role_before = before.get("role") if type(before) is dict else None
        for place in range(first, len(items)):
            item = items[place]
            if not is_plain(item) or item["role"] not in ("user", "assistant"):
                return False
            text, role = item["content"], item["role"]
            if not text.isascii() or not text.strip() or "\x00" in text:
                return False
            if dialect.RESULTS_IN_USER and (role == role_before or (not place and role != "user")):
                return False
            if role == "assistant" and role_before == "user":
                resume = place - 1
            role_before = role
        self._resume = resume  # only now: where something else follows, all that is new has to be checked
        self._items[seen:] = items[seen:]
        return True

    def _recognise(
        self, items: Sequence[Any], seen: int, named: str | None, tools: Tools
    ) -> tuple[int, Dialect]:
        """How many of the messages were looked at before, and the dialect of all."""
        known = self._dialect if seen else None
        if named is not None:
            wanted = dialects.get(named)
            return seen if wanted is known else 0, wanted
        if known is None or not all(_may_be(item, known) for item in items[seen:]):
            found = dialects.detect(items)
            return 0, dialects.get("anthropic") if _goes_to_anthropic(items, found, tools) else found
        return seen, known

    # --- legal

    def _clean(self, working: Working, dialect: Dialect, seen: int, tools: Tools) -> Asking[Working]:
        """A legal list. What is removed is durable first; if the archive does not take it, the list stays as it is."""
        if tools.max_turns is None and self._is_legal(working.items, dialect, seen):
            return working
        report = hygiene.clean_report(working.items, tools.max_turns, dialect.NAME)
        if report.messages is working.items:
            return working
        if not report.messages:
            raise MessageError(
                "no message says anything, so there is nothing to send",
                hint="Pass at least one message with content",
            )
        try:
            yield KeepRemoved(
                [removed.message for removed in report.removed],
                [removed.reason for removed in report.removed],
            )
        except ArchiveError as problem:
            yield Emit(Failure.of(problem, "none"))
            return working
        places = find_places(working.items, report.messages)
        sources = [None if place is None else working.sources[place] for place in places]
        desk = tools.desk(dialect)
        # What hygiene mends is compact's own writing. It is masked, so that it is the same after a restart.
        items = [
            dialect.write(desk.rewrite(dialect.read(item))) if place is None else item
            for place, item in zip(places, report.messages, strict=True)
        ]
        return Working(items, sources, working.bare)

    def _is_legal(self, items: Sequence[Any], dialect: Dialect, seen: int) -> bool:
        """Whether `violations` would find nothing. The first `seen` messages are not looked at again."""
        if not seen or dialect is not self._dialect:
            self._items, self._calls, self._resume, seen = [], set(), 0, 0
        start = self._resume
        _, fresh = dialects.read(items[start:], dialect)
        found = violations_in(fresh, dialect)
        new_calls = [call.id for message in fresh[seen - start :] for call in message.calls if call.id]
        new_calls += filter(None, (item_id(message, dialect) for message in fresh[seen - start :]))
        # The message before the reply is legal where it stands. Alone at the beginning it may not look so.
        if any(violation.index or not start for violation in found) or not self._calls.isdisjoint(new_calls):
            self._items = []
            return False
        self._calls.update(new_calls)
        self._items[seen:] = items[seen:]
        self._dialect = dialect
        self._resume = start + _newest_reply(fresh)
        return True

    # --- huge

    def _offload(self, working: Working, dialect: Dialect, seen: int, tools: Tools) -> Asking[Working]:
        """A huge result goes to the archive when it is first seen, whatever the total."""
        desk = tools.desk(dialect)
        large = [
            n
            for n in range(seen if tools.moves_arriving else len(working.items), len(working.items))
            if is_long(longest_text(working.items[n]), desk)
            or tools.meter.count_item(working.items[n], dialect) > desk.large_result_tokens
        ]
        if not large and not self._moved:
            return working
        items, sources = list(working.items), list(working.sources)
        changed = self._move_again(items, sources)
        for n in large:
            message = dialect.read(items[n])
            if message.protected or not any(is_large(result.text, desk) for result in message.results):
                continue
            callers = _callers(items[:n], dialect, message)
            if any(caller.protected for caller in callers):
                continue  # a protected call protects its pair
            names = {call.id: call.name for caller in callers for call in caller.calls}
            if tools.keeps_sent and (yield from _was_seen_whole(items, n, message, dialect, desk)):
                continue  # the next pass moves it
            row = Row(message, desk.large_result_tokens + 1, sources[n])
            try:
                moved = yield from offload_row(row, desk, names)
            except ArchiveError as problem:
                yield Emit(Failure.of(problem, "none"))
                continue
            if moved is not row:
                pointer, source = dialect.write(moved.message), sources[n]
                if source is not None:
                    self._moved[source] = (without_marks(items[n]), without_marks(pointer))
                items[n], sources[n], changed = pointer, None, True
        return Working(items, sources, working.bare) if changed else working

    def _move_again(self, items: list[Any], sources: list[int | None]) -> bool:
        """Put the same pointers in place again for a host that passes its full history. Whether there were any."""
        changed = False
        for n, source in enumerate(sources):
            before = self._moved.get(source) if source is not None else None
            if before is not None and without_marks(items[n]) == before[0]:
                mark = mark_of(items[n]) if has_mark(items[n]) else None
                pointer = before[1] if mark is None else with_mark(before[1], mark)
                items[n], sources[n], changed = pointer, None, True
        return changed


def _was_seen_whole(
    items: Sequence[Any], place: int, message: Message, dialect: Dialect, desk: Desk
) -> Asking[bool]:
    """Whether the model has seen a large result whole: it has replied since, and nobody has moved the result before."""
    if not any(dialect.read(item).role == "assistant" for item in items[place + 1 :]):
        return False
    for text in (result.text for result in message.results if is_large(result.text, desk)):
        try:
            if (yield IsStored(text)):
                return False
        except ArchiveError:
            return True
    return True


def first_new(known: int, given: Sequence[Any], items: Sequence[Any]) -> int:
    """The index of the first message that is new since the last step, which left `known` ones. `items` is `given` after repairs."""
    if given is items or len(given) == len(items):
        return known
    first = len(items)
    for n, place in reversed(list(enumerate(find_places(given, items)))):
        if place is not None and place < known:
            break
        first = n  # a message that was repaired follows the one before it
    return first


def find_places(known: Iterable[Any], wanted: Iterable[Any]) -> list[int | None]:
    """Find the place of each object among the known ones; None if it is not one of them.

    A host may use one object several times. Its first use is then the first among the known ones, and so on.
    """
    found: dict[int, list[int]] = defaultdict(list)
    for place, each in enumerate(known):
        found[id(each)].append(place)
    return [places.pop(0) if (places := found[id(each)]) else None for each in wanted]


def _goes_to_anthropic(items: Sequence[Any], found: Dialect, tools: Tools) -> bool:
    """Whether a list that could be several dialects goes to Anthropic, by the shape of its tools."""
    schemas = next(iter(tools.beside[1:]), None)
    return (
        found.NAME == "chat"
        and isinstance(schemas, list | tuple)
        and any(isinstance(each, Mapping) and "input_schema" in each for each in schemas)
        and all(is_plain(item) and item["role"] in ("user", "assistant") for item in items)
    )


def _newest_reply(messages: Sequence[Message]) -> int:
    """Where the newest reply begins, with the message before it."""
    index = len(messages)
    while index and messages[index - 1].role != "assistant":
        index -= 1
    while index and messages[index - 1].role == "assistant":
        index -= 1
    return max(0, index - 1)


def _callers(items: Sequence[Any], dialect: Dialect, message: Message) -> list[Message]:
    """The messages with the calls that a message answers, searched from the end."""
    wanted = {result.call_id for result in message.results}
    found: list[Message] = []
    for item in reversed(items):
        if not wanted:
            break
        caller = dialect.read(item)
        if wanted & {call.id for call in caller.calls}:
            wanted -= {call.id for call in caller.calls}
            found.append(caller)
    return found


def _may_be(item: Any, dialect: Dialect) -> bool:
    try:
        return is_plain(item) or bool(dialect.claim(plain(item)))
    except ValueError:
        return False
