"""Replace old tool traffic by pointers: results, and the bulky arguments of calls that write files. Reversible.

The oldest texts go first, and only as many as it takes. Every text is durable in the archive before its pointer stands in
the context. Room that is left goes to excerpts: beside its pointer, a text keeps the lines that nothing else says.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compact.engine.context import Context, Desk, Row, tool_names, total, with_result_text
from compact.engine.effects import Asking, Emit, Store
from compact.engine.plan import choose_kept, doomed, summary_room
from compact.events import CallsShrunk
from compact.messages import Message, Text, ToolCall, ToolResult, to_json
from compact.messages.excerpts import Piece, number_lines, pieces_of, read_numbered, words_of
from compact.messages.message import POINTER_OPENS
from compact.messages.units import Unit, removable
from compact.summaries.choosing import choose

BULKY_TOKENS = 80
"""A text shorter than this is not worth a pointer."""
POINTER_TOKENS = 56
"""Roughly what a pointer costs without an excerpt."""
_PIECE_TOKENS = 2
"""Roughly what a piece costs beside its text."""
_EXCERPT = "; its lines:]"
_HEADER = re.compile(
    rf"{re.escape(POINTER_OPENS)}.* is in (?P<path>\S+), [\d,]+ tokens(?:\]|{re.escape(_EXCERPT)})"
)
_LEAST_SHARE = 0.1
_LEAST_ROOM = 1 / 64
"""A share of the texts. With less room than this, excerpts cost more to choose than they are worth."""
_TRIES = 4
_MORE = 1.3
"""Pieces are ranked for somewhat more than the room, because their cost is an estimate."""


@dataclass(frozen=True, slots=True)
class _Bulk:
    """A text that can become a pointer: where it stands, and what it costs as a whole."""

    row: int
    part: int
    key: str | None
    """The name of the argument; None for a result."""
    text: str
    what: str
    tool_name: str
    call_id: str
    tokens: int

    def masked(self, message: Message) -> str:
        """The same text in the masked form of its message."""
        part = message.parts[self.part]
        if isinstance(part, ToolResult):
            return part.text
        assert isinstance(part, ToolCall)
        assert self.key is not None
        return str((part.parsed_arguments() or {})[self.key])


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A text in the archive, and the part of it that may stay: its masked form, or the lines of its earlier excerpt."""

    bulk: _Bulk
    path: str
    header: str
    masked: str
    is_excerpt: bool = False

    def pieces(self, owner: int) -> list[Piece]:
        """The text in pieces that belong to `owner`."""
        return read_numbered(self.masked, owner) if self.is_excerpt else pieces_of(self.masked, owner)


def shrink_calls(context: Context) -> Asking[Context]:
    """Reduce old pairs until the target is reached. A no-op where everything is folded anyway."""
    rules, units = context.rules, context.units
    if rules.fold_all or rules.layout == "selective":
        return context
    free = removable(units, *choose_kept(context))
    least = [
        _least_tokens(context, unit) if may_go else context.tokens_of(unit)
        for unit, may_go in zip(units, free, strict=True)
    ]
    folding = doomed(context, free, least)
    folding_tokens = sum(context.tokens_of(units[place]) for place in folding)
    target = rules.target + max(0, folding_tokens - summary_room(context, free))
    may_go = [may_go and place not in folding for place, may_go in enumerate(free)]
    return (yield from shrink(context, may_go, target))


def shrink(
    context: Context, may_go: Sequence[bool], target: int, *, every_tool: bool = False
) -> Asking[Context]:
    """Reduce the pairs that may go until the total is at most `target`: repeated reads first, then by age.

    With `every_tool`, long arguments of any tool become pointers, not only of those that write files.
    """
    rows, desk = context.rows, context.desk
    if context.tokens <= target:
        return context
    names = tool_names(rows)
    candidates = [
        unit for unit, free in zip(context.units, may_go, strict=True) if free and unit.kind == "pair"
    ]
    repeated = _find_repeated(rows, candidates)
    by_age = sorted(candidates, key=lambda unit: (unit.start not in repeated, unit.start))
    bulks = [list(_bulks(rows, unit, desk, names, every_tool)) for unit in by_age]
    going = [
        bulk for group in _take_enough(bulks, context.tokens - target, desk.excerpt_share) for bulk in group
    ]
    reduced: list[_Reduced] = []
    for bulk in going:
        reduced.append((yield from _archive(bulk, rows[bulk.row].quotable, desk)))
    found, shown = _fit(context, reduced, target)
    for entry in reduced:
        text = shown[entry.bulk]
        if text is not entry.bulk.text:
            desk.written.note_pointer(text)
            yield Emit(
                CallsShrunk(
                    tool_name=entry.bulk.tool_name,
                    tool_call_id=entry.bulk.call_id,
                    tokens_before=entry.bulk.tokens,
                    tokens_after=desk.count_text(text),
                    file_path=entry.path,
                )
            )
    # "compact" is the addendum's name for this stage in the statistics.
    return context.with_rows(found).credit("compact", context.tokens - total(found))


def _least_tokens(context: Context, unit: Unit) -> int:
    """Roughly what a unit costs when all of its bulk is pointers."""
    gained = sum(bulk.tokens - POINTER_TOKENS for bulk in _bulks(context.rows, unit, context.desk, {}))
    return context.tokens_of(unit) - gained


# --- what can be reduced, and how much of it must be


def _find_repeated(rows: Sequence[Row], candidates: Sequence[Unit]) -> set[int]:
    """Starts of the units whose calls are all repeated later: only the newest reading counts."""
    newest: dict[tuple[str, str], int] = {}
    for index, row in enumerate(rows):
        for call in row.message.calls:
            newest[(call.name, call.arguments_text)] = index
    found = set()
    for unit in candidates:
        calls = [
            (index, call) for index in range(unit.start, unit.stop) for call in rows[index].message.calls
        ]
        if calls and all(newest[(call.name, call.arguments_text)] > index for index, call in calls):
            found.add(unit.start)
    return found


def _bulks(
    rows: Sequence[Row], unit: Unit, desk: Desk, names: Mapping[str, str], every_tool: bool = False
) -> Iterable[_Bulk]:
    """The bulky texts of a unit. Calls that are bound to signed reasoning are never edited; their results are."""
    bound = any(rows[index].message.signed for index in range(unit.start, unit.stop))
    for index in range(unit.start, unit.stop):
        for place, part in enumerate(rows[index].message.parts):
            if isinstance(part, ToolResult):
                name = part.name or names.get(part.call_id, "tool")
                texts: list[tuple[str | None, str, str]] = [(None, part.text, "the output")]
            elif (
                isinstance(part, ToolCall)
                and not bound
                and not part.free_form
                and (every_tool or part.name in desk.write_tools)
            ):
                name = part.name
                arguments = part.parsed_arguments() or {}
                texts = [
                    (key, value, f"the {key} that {name} wrote")
                    for key, value in arguments.items()
                    if isinstance(value, str)
                ]
            else:
                continue
            call_id = part.call_id if isinstance(part, ToolResult) else part.id
            for key, text, what in texts:
                if _is_bulky(text, desk):
                    yield _Bulk(index, place, key, text, what, name, call_id, desk.count_text(text))


def _is_bulky(text: str, desk: Desk) -> bool:
    if len(text) <= BULKY_TOKENS or desk.written.is_recalled(text):
        return False
    if desk.written.is_pointer(text) and not _HEADER.match(text):
        return False
    return desk.count_text(text) > BULKY_TOKENS


def _take_enough(groups: Sequence[Sequence[_Bulk]], excess: int, share: float) -> Sequence[Sequence[_Bulk]]:
    """The first groups that must be reduced if `share` of their texts stays. If all are not enough, the share is halved."""
    while True:
        gained = 0.0
        for taken, group in enumerate(groups, start=1):
            gained += sum(max(0.0, bulk.tokens * (1 - share) - POINTER_TOKENS) for bulk in group)
            if gained >= excess:
                return groups[:taken]
        if not share:
            return groups
        share = share / 2 if share > _LEAST_SHARE else 0.0


# --- pointers and excerpts


def _archive(bulk: _Bulk, masked: Message, desk: Desk) -> Asking[_Reduced]:
    known = _HEADER.match(bulk.text)
    if known is not None and desk.written.is_pointer(bulk.text):
        header = known.group().removesuffix(_EXCERPT).removesuffix("]")
        return _Reduced(bulk, known["path"], header, bulk.text[known.end() + 1 :], is_excerpt=True)
    path = yield Store(bulk.text, bulk.tool_name, bulk.call_id)
    header = f"{POINTER_OPENS}{desk.redact(bulk.what)} is in {path}, {bulk.tokens:,} tokens"
    return _Reduced(bulk, path, header, bulk.masked(masked))


def _fit(context: Context, reduced: Sequence[_Reduced], target: int) -> tuple[list[Row], dict[_Bulk, str]]:
    """Put pointers into the rows, with as much of the texts as fits the target."""
    rows, desk = context.rows, context.desk
    bare = {entry.bulk: _show(entry, (), desk) for entry in reduced}
    found = _apply(rows, bare, desk)
    room = float(target - total(found))
    if room < _LEAST_ROOM * sum(entry.bulk.tokens for entry in reduced) or not desk.excerpt_share:
        return _spare_newest(rows, found, bare, desk, target)
    reduced = sorted(reduced, key=lambda entry: (entry.bulk.row, entry.bulk.part))
    pieces = [piece for owner, entry in enumerate(reduced) for piece in entry.pieces(owner)]
    rates = [entry.bulk.tokens / len(entry.bulk.text) for entry in reduced]
    costs = [len(piece.text) * rates[piece.owner] + _PIECE_TOKENS for piece in pieces]
    limits = [entry.bulk.tokens * desk.excerpt_share for entry in reduced]
    order = choose(pieces, costs, context.values, _standing(rows, reduced, desk), room * _MORE)
    wanted = room
    for _ in range(_TRIES):
        taken = _within(order, pieces, costs, limits, wanted)
        shown = _excerpts(reduced, pieces, taken, desk)
        spent = sum(desk.count_text(shown[bulk]) - desk.count_text(text) for bulk, text in bare.items())
        over = spent - room
        if over <= 0:
            fuller = _apply(rows, shown, desk)
            over = total(fuller) - target  # quoted in JSON, a text costs more than alone
            if over <= 0:
                return fuller, shown
        wanted = min(wanted, sum(costs[place] for place in taken)) - over * 1.2 - 8
    return found, bare


def _spare_newest(
    rows: Sequence[Row], found: list[Row], bare: dict[_Bulk, str], desk: Desk, target: int
) -> tuple[list[Row], dict[_Bulk, str]]:
    """Keep the newest of the texts whole after all, as far as there is room."""
    room = target - total(found)
    shown = dict(bare)
    for bulk in sorted(bare, key=lambda bulk: -bulk.row):
        gained = bulk.tokens - desk.count_text(bare[bulk])
        if gained > room:
            break
        room -= gained
        shown[bulk] = bulk.text
    fuller = _apply(rows, shown, desk)
    return (fuller, shown) if total(fuller) <= target else (found, bare)


def _within(
    order: Sequence[int],
    pieces: Sequence[Piece],
    costs: Sequence[float],
    limits: Sequence[float],
    room: float,
) -> set[int]:
    """Take pieces in order while they fit the room: of each text at most its limit, then whatever still fits."""
    found: set[int] = set()
    left = list(limits)
    for within_limits in (True, False):
        for place in order:
            owner, cost = pieces[place].owner, costs[place]
            if place in found or cost > room or (within_limits and cost > left[owner]):
                continue
            room -= cost
            left[owner] -= cost
            found.add(place)
            if room < 4:
                return found
    return found


def _excerpts(
    reduced: Sequence[_Reduced], pieces: Sequence[Piece], taken: set[int], desk: Desk
) -> dict[_Bulk, str]:
    by_owner: list[list[Piece]] = [[] for _ in reduced]
    for place in sorted(taken):
        by_owner[pieces[place].owner].append(pieces[place])
    return {entry.bulk: _show(entry, kept, desk) for entry, kept in zip(reduced, by_owner, strict=True)}


def _show(entry: _Reduced, kept: Sequence[Piece], desk: Desk) -> str:
    """The pointer with its excerpt, or the whole text if that is shorter."""
    text = f"{entry.header}{_EXCERPT}\n{number_lines(kept)}" if kept else f"{entry.header}]"
    if len(text) < len(entry.bulk.text) // 2:
        return text
    return text if desk.count_text(text) < entry.bulk.tokens else entry.bulk.text


def _standing(rows: Sequence[Row], reduced: Sequence[_Reduced], desk: Desk) -> dict[str, int]:
    """For every word that no pointer replaces, the owner of pieces before which it stands last."""
    rows_of_owners = [entry.bulk.row for entry in reduced]
    gone = {(entry.bulk.row, entry.bulk.part) for entry in reduced}
    found: dict[str, int] = {}
    for index, text in _untouched_texts(rows, gone, desk):
        found.update(dict.fromkeys(words_of([text]), bisect(rows_of_owners, index)))
    return found


def _untouched_texts(
    rows: Sequence[Row], gone: set[tuple[int, int]], desk: Desk
) -> Iterable[tuple[int, str]]:
    """The texts of the context that no pointer replaces."""
    for index, row in enumerate(rows):
        for place, part in enumerate(row.message.parts):
            if (index, place) in gone:
                continue
            if isinstance(part, Text | ToolResult) and not desk.written.is_pointer(part.text):
                yield index, part.text
            elif isinstance(part, ToolCall):
                yield index, part.arguments_text


def _apply(rows: Sequence[Row], shown: Mapping[_Bulk, str], desk: Desk) -> list[Row]:
    """Put these texts into the rows."""
    found = list(rows)
    for index, message in _rewrite(rows, shown):
        found[index] = Row(message, desk.count(message), None, "shrunk")
    return found


def _rewrite(rows: Sequence[Row], shown: Mapping[_Bulk, str]) -> Iterable[tuple[int, Message]]:
    by_row: dict[int, list[_Bulk]] = {}
    for bulk, text in shown.items():
        if text is not bulk.text:
            by_row.setdefault(bulk.row, []).append(bulk)
    for index, bulks in by_row.items():
        message = rows[index].quotable
        for bulk in bulks:
            message = _with_text(message, bulk, shown[bulk])
        yield index, message


def _with_text(message: Message, bulk: _Bulk, text: str) -> Message:
    if bulk.key is None:
        return with_result_text(message, bulk.part, text)
    parts = list(message.parts)
    call = parts[bulk.part]
    assert isinstance(call, ToolCall)
    arguments = {**(call.parsed_arguments() or {}), bulk.key: text}
    parts[bulk.part] = replace(
        call, arguments=to_json(arguments) if isinstance(call.arguments, str) else arguments
    )
    return message.with_parts(tuple(parts))
