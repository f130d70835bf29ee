"""Where a session may be cut, what may be removed and what is recent. Pure.

A session is a sequence of units: a single message, or a reply with calls and all their results. A unit is kept, reduced
or folded as a whole. Turns decide how long text stays, pairs how long tool traffic stays, so a turn of two hundred calls
is cut between its pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from compact.messages import dialects
from compact.messages.dialects import Dialect
from compact.messages.message import LEDGER_OPENS, Message
from compact.messages.pairs import Batch, batches, in_flight

Kind: TypeAlias = Literal["opener", "words", "pair", "summary"]


@dataclass(frozen=True, slots=True)
class Unit:
    """Neighbouring messages that share one fate."""

    start: int
    stop: int
    kind: Kind
    turn: int
    """The number of its turn, from 1; 0 before the first turn."""
    pinned: bool = False
    in_flight: bool = False
    """Some of its results are still missing, so it is never touched."""


def units(
    messages: Sequence[Message],
    dialect: Dialect,
    *,
    is_pinned: Callable[[Message], bool],
    is_summary: Callable[[Message], bool] = lambda _: False,
) -> list[Unit]:
    """Split a legal list into units, in order and without gaps. A unit is pinned if any of its messages is."""
    joined = {start: (stop, flying) for start, stop, flying in _spans(messages, dialect, is_summary)}
    found: list[Unit] = []
    turn = index = 0
    while index < len(messages):
        message = messages[index]
        stop, flying = joined.get(index, (index + 1, False))
        own = is_summary(message)
        if message.starts_turn and not (own and message.text.startswith(LEDGER_OPENS)):
            turn += 1  # a ledger in the user's role stands inside the turn that it follows
        kind: Kind = "summary" if own else "opener" if message.starts_turn else "words"
        if index in joined and any(m.calls for m in messages[index:stop]):
            kind = "pair"
        pinned = any(map(is_pinned, messages[index:stop]))
        found.append(Unit(index, stop, kind, turn, pinned, flying))
        index = stop
    return found


def removable(units: Sequence[Unit], keep_turns: int, keep_pairs: int) -> list[bool]:
    """Return for each unit whether it may be removed.

    The text of the newest `keep_turns` turns and the newest `keep_pairs` pairs stay. Pinned units, units in flight, the
    newest unit and the message that opened the newest turn always stay. An earlier summary may always be removed,
    because it is folded into the next one.
    """
    newest_turn = max((unit.turn for unit in units), default=0)
    first_kept_turn = max(1, newest_turn - keep_turns + 1)
    pairs = [place for place, unit in enumerate(units) if unit.kind == "pair"]
    kept_pairs = set(pairs[max(0, len(pairs) - keep_pairs) :])
    last = max((place for place, unit in enumerate(units) if unit.kind != "summary"), default=-1)
    found = []
    for place, unit in enumerate(units):
        if unit.pinned or unit.in_flight or place == last:
            found.append(False)
        elif unit.kind == "summary":
            found.append(True)
        elif unit.kind == "pair":
            found.append(place not in kept_pairs)
        elif unit.kind == "opener" and unit.turn == newest_turn:
            found.append(False)
        else:
            found.append(unit.turn < first_kept_turn)
    return found


def compressible_run(
    messages: Sequence[Any], retention_window: int, dialect: str | None = None
) -> range | None:
    """Return the earliest run of messages behind a user message that is worth compressing, or None.

    It has at least two messages and never separates a call from its result. It contains none of the newest
    `retention_window` messages, and no user, system, developer or protected message.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    known, neutral = dialects.read(messages, dialect)
    return next(runs_between_users(neutral, known, retention_window), None)


def runs_between_users(
    messages: Sequence[Message],
    dialect: Dialect,
    retention_window: int,
    is_pinned: Callable[[Message], bool] = lambda m: m.protected or m.role in ("system", "developer"),
    shortest: int = 2,
) -> Iterator[range]:
    """All runs of at least `shortest` messages, of which `compressible_run` returns the first; on neutral messages."""
    limit = max(0, len(messages) - max(0, retention_window))
    if limit and messages[limit - 1].calls:
        limit -= 1
    spans = _spans(messages, dialect, lambda _: False)
    blocked = {index for index, message in enumerate(messages) if is_pinned(message)}
    for start, stop, flying in spans:
        if start < limit < stop or (flying and start < limit):
            limit = start
        if blocked & set(range(start, stop)):
            blocked |= set(range(start, stop))
    seen_user = False
    start = 0
    for index in range(limit + 1):
        ends = index == limit or index in blocked or _is_users(messages[index])
        if not ends:
            continue
        if seen_user and index - start >= shortest:
            yield range(start, index)
        if index < limit and _is_users(messages[index]):
            seen_user = True
        start = index + 1


def _is_users(message: Message) -> bool:
    return message.role == "user" and not message.results


def _spans(
    messages: Sequence[Message], dialect: Dialect, is_summary: Callable[[Message], bool]
) -> list[tuple[int, int, bool]]:
    """The start and stop of every range that must stay together, and whether it is in flight."""
    found = []
    for batch in batches(messages, dialect):
        start = _reply_start(messages, batch, is_summary) if dialect.ITEMS_ARE_PARTS else batch.start
        answers = [place.message for place in batch.answers if place is not None]
        found.append((start, max([batch.end - 1, *answers]) + 1, in_flight(messages, batch)))
    if dialect.ITEMS_ARE_PARTS:
        found += _reasoning_runs(messages, found, is_summary)
    return found


def _reply_start(messages: Sequence[Message], batch: Batch, is_summary: Callable[[Message], bool]) -> int:
    """The start of a reply, which includes the reasoning and text before its calls."""
    start = batch.start
    while start and messages[start - 1].role == "assistant" and not is_summary(messages[start - 1]):
        start -= 1
    return start


def _reasoning_runs(
    messages: Sequence[Message], taken: list[tuple[int, int, bool]], is_summary: Callable[[Message], bool]
) -> list[tuple[int, int, bool]]:
    """Replies without calls, in a dialect where reasoning is a separate entry that is bound to what follows it."""
    covered = {index for start, stop, _ in taken for index in range(start, stop)}
    found = []
    index = 0
    while index < len(messages):
        stop = index
        while stop < len(messages) and stop not in covered and messages[stop].role == "assistant":
            if is_summary(messages[stop]):
                break
            stop += 1
        if stop - index > 1 and any(
            part.kind == "reasoning" for m in messages[index:stop] for part in m.parts
        ):
            found.append((index, stop, False))
        index = max(stop, index + 1)
    return found
