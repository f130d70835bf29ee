"""The ledger in a pass: who is heard, which entries no message shows any more, and where these stand. Does no I/O.

    hear        what people said since the last step, and what the host pinned, join the ledger
    take_out    the ledgers of earlier steps leave their messages, so that stages see only what is not written anew
    set_aside   a stage reduces the context to what the ledger leaves of the target
    put_in      the first summary carries the ledger; without a summary it is a message of its own, behind what is pinned

An entry whose message stands whole is not shown. So the same pass that folds a message shows what it said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from compact.engine.context import Context, Level, Row, alternate, total
from compact.engine.effects import Asking, KeepRemoved, LoadPins
from compact.engine.frames import entries_in, frame, step_of, with_ledger, without_ledger
from compact.engine.limits import Rules
from compact.engine.plan import foldable, folds_users, newest_of_user, rows_of
from compact.messages import Message, Text
from compact.messages.hygiene.sanitizing import valid_text
from compact.messages.message import FRAME_OPENS, GAP, LEDGER_OPENS, text_hash
from compact.summaries import ledger
from compact.summaries.ledger import Entry, Heard, Written

_PROGRAMS_LIST = (
    "system tool tools function bash shell sh terminal console python computer browser environment env observation reminder"
    " scheduler cron hook webhook memory notification executor code_executor retriever search bot critic"
)
_PROGRAMS = frozenset(_PROGRAMS_LIST.split())
"""Names in the user's role that are no person's, beside those of the tools that the agent calls."""
Voice: TypeAlias = Literal["user", "agent"]
_SMALL_WINDOW = 6
"""The ledger takes at most one part in this many of what pinned messages and the user's newest one leave of the budget."""
_SEAM = 2
"""Tokens of the empty line between the ledger and what follows it."""
_LEAST = 24
"""Tokens. In less room, a ledger would say nothing."""
_TRIES = 4
"""Markers between roles take room, too. A ledger that comes out too long is written again, shorter by the excess."""


# --- what is said


def hear(context: Context, known: tuple[Entry, ...] | None, new: int) -> Asking[Context]:
    """Return the context with its ledger: `known`, what was said from row `new` on, and what the host pinned.

    Without a known ledger, that of the messages that earlier versions wrote is read.

    Raises:
        ArchiveError: the archive does not say what was pinned.
    """
    if known is None:
        known = read_frames([row.message for row in context.rows if context.is_summary(row.message)])
    changes = yield LoadPins()
    said = list_heard(context.rows, new, context.step, context.summaries)
    found, pins = apply_pins(ledger.extend(known, said), changes, context.pins)
    rules, users = context.rules, newest_of_user(context)
    fixed = sum(
        row.tokens for n, row in enumerate(context.rows) if n in users or context.is_pinned(row.message)
    )
    return replace(context, ledger=found, ledger_room=room_for(rules, fixed), pins=pins)


def room_for(rules: Rules, fixed: int) -> int:
    """Tokens that the ledger may take beside messages that stay and take `fixed`."""
    return max(0, min(rules.ledger_tokens, (rules.budget - fixed) // _SMALL_WINDOW))


def read_frames(messages: Sequence[Message]) -> tuple[Entry, ...]:
    """The ledger as the messages of an earlier version carry it."""
    return tuple(entry for message in messages for entry in entries_in(message.text))


def list_entries(messages: Sequence[Message]) -> tuple[Entry, ...]:
    """The ledger of a whole session whose messages are masked."""
    return ledger.extend((), list_heard([Row(message, 0, None) for message in messages], 0, 1))


def list_heard(
    rows: Sequence[Row], new: int, step: int, summaries: frozenset[str] = frozenset()
) -> list[Heard]:
    """List what people and the agent said from row `new` on.

    What the agent said last before a person's first words comes first, because these may answer it. `summaries` are the hashes
    of compact's own messages, which nobody said.
    """
    found: list[Heard] = []
    before: Heard | None = None
    programs = {call.name.lower() for row in rows for call in row.message.calls} | _PROGRAMS
    for n, row in enumerate(rows):
        message = row.quotable
        voice = _voice(message)
        if voice == "user" and _program_named(row.message) in programs:
            voice = None
        if voice is None or (summaries and text_hash(row.message.text) in summaries):
            continue
        place = f"m{n + 1}" if step <= 1 else f"v{step} m{n + 1}"
        heard = Heard(place, voice, message.text)
        if found or (n >= new and voice == "user"):
            found += [heard] if found or before is None else [before, heard]
        elif voice == "agent":
            before = heard
    return found


def _program_named(message: Message) -> str:
    """The `name` of a message in lower case, with which hosts say who wrote it; empty without one."""
    name = message.origin.get("name") if isinstance(message.origin, Mapping) else None
    return name.lower() if isinstance(name, str) else ""


def _voice(message: Message) -> Voice | None:
    """Who says the text of a message; None: neither a person nor the agent."""
    text = message.text
    if not text.strip() or text == GAP or message.injected:
        return None
    if message.role == "assistant":
        return "agent"
    # Beside results, a text in the user's role is what a person added to them.
    return "user" if message.role == "user" else None


def apply_pins(
    entries: Sequence[Entry], changes: Sequence[Mapping[str, Any]], known: int
) -> tuple[tuple[Entry, ...], int]:
    """Return the entries with what the host pinned and unpinned, and how many changes that are.

    The entries have the first `known` changes already. A reset takes back what was pinned before it.
    """
    first = int(changes[0].get("base", 0)) if changes else 0
    start = max([known - first, 0, *(n + 1 for n, change in enumerate(changes) if "reset" in change)])
    found = {entry.id: entry for entry in entries}
    for change in changes[start:]:
        if "pin" in change:
            pinned = ledger.from_json(change["pin"])
            found.pop(pinned.id, None)
            found[pinned.id] = pinned
        elif (entry := found.get(str(change.get("unpin")))) is not None:
            found[entry.id] = replace(entry, status="withdrawn")
    return tuple(found.values()), max(known, first + len(changes))


# --- what is not shown by its message


def unseen(entries: Sequence[Entry], rows: Sequence[Row]) -> tuple[Entry, ...]:
    """The entries without those that stand whole in one of these rows. Empty if no entry is left that stands."""
    standing = [entry for entry in entries if entry.status == "stands"]
    if not standing:
        return ()
    by_people = _said_in(rows, "user")
    by_agent = _said_in(rows, "assistant") if any(entry.answers is not None for entry in standing) else ""

    def is_shown(entry: Entry) -> bool:
        if entry.status != "stands" or entry.source == "host" or _flat(entry.text) not in by_people:
            return False
        if entry.was is not None and _flat(entry.was) not in by_people:
            return False
        return entry.answers is None or _flat(entry.answers) in by_agent

    found = tuple(entry for entry in entries if not is_shown(entry))
    return found if any(entry.status == "stands" for entry in found) else ()


def _said_in(rows: Sequence[Row], role: str) -> str:
    """What a person or the agent says in these rows, a message in a line. Frames quote others."""
    messages = (row.quotable for row in rows if row.message.role == role)
    texts = (message.text for message in messages if _voice(message) is not None)
    return "\n".join(_flat(text) for text in texts if not text.startswith(FRAME_OPENS))


def _flat(text: str) -> str:
    return " ".join(text.split())


# --- the stages in between


@dataclass(frozen=True, slots=True)
class TakenOut:
    """The rows whose ledger was taken out, by the id of the message that stands in their place meanwhile."""

    rows: Mapping[int, Row]


def take_out(context: Context) -> tuple[Context, TakenOut]:
    """Return the context with its frames as they are without their ledger."""
    rows, taken = list(context.rows), dict[int, Row]()
    for n, row in enumerate(rows):
        if context.is_summary(row.message) and (bare := without_ledger(row.message.text)) != row.message.text:
            rows[n] = _rewritten(row, bare, context)
            taken[id(rows[n].message)] = row
    own = context.summaries | {
        text_hash(rows[n].message.text) for n, row in enumerate(context.rows) if rows[n] is not row
    }
    return context.with_rows(rows, summaries=own), TakenOut(taken)


def set_aside(context: Context, *, may_fold: bool) -> Context:
    """The context with rules that leave room for the ledger.

    A stage that `may_fold` messages of the user leaves room for what these say, too.
    """
    if not context.ledger:
        return context
    now = cost(context, unseen(context.ledger, context.rows))
    aside = now
    if may_fold and _folds_users(context, now):
        entries = unseen(context.ledger, [context.rows[n] for n in _staying(context)])
        aside = max(now, cost(context, entries))
    in_budget = now
    if total(alternate(context.rows, context.desk)) + now > context.rules.budget:
        users = newest_of_user(context) | rows_of(context.units, pinned=True)
        in_budget = max(now, cost(context, unseen(context.ledger, [context.rows[n] for n in sorted(users)])))
    if not aside and not in_budget:
        return context
    return context.with_rules(context.rules.set_aside(aside, in_budget))


def _folds_users(context: Context, aside: int) -> bool:
    if context.rules.layout != "selective":
        return True
    return folds_users(context.with_rules(context.rules.set_aside(aside, 0)))


def _staying(context: Context) -> list[int]:
    """The rows that stay if everything is folded that may be."""
    return [
        n
        for unit, free in zip(context.units, foldable(context), strict=True)
        if not free
        for n in range(unit.start, unit.stop)
    ]


def cost(context: Context, entries: Sequence[Entry]) -> int:
    """Tokens of a ledger with these entries, and of the message that it needs if there is no summary."""
    if not entries or context.ledger_room < _LEAST:
        return 0
    written = _write(context, entries, context.ledger_room, context.history_path)
    if not written.text:
        return 0
    tokens = context.desk.count_text(written.text) + _SEAM
    if _frame_place(context) is None:
        tokens += context.desk.count(_said(frame(context.step, "", "", context.history_path)))
    return tokens


# --- what stands


def put_in(context: Context, taken: TakenOut) -> Asking[tuple[Context, Written]]:
    """Return the context with the ledger of what no message shows, and that ledger.

    It takes what is left of the budget, up to its room. Entries without room are stored, so that the ledger can name a path at
    which they can be read.

    Raises:
        ArchiveError: the archive did not take them.
    """
    entries = unseen(context.ledger, context.rows)
    desk, where = context.desk, context.history_path
    room, is_stored = context.ledger_room, False
    nothing = Written("", left=tuple(entry for entry in entries if entry.status == "stands"))
    for _ in range(_TRIES):
        if not entries or room < _LEAST:
            break
        written = _write(context, entries, room, where)
        if written.left and not is_stored:
            standing = [entry.text for entry in entries if entry.status == "stands"]
            kept = KeepRemoved(
                [{"role": "user", "content": text} for text in standing], ["ledger"] * len(standing)
            )
            where, is_stored = (yield kept), True
            written = _write(context, entries, room, where)
        placed = _place(context, written.text, taken)
        over = total(alternate(placed.rows, desk)) - context.rules.budget
        if over <= 0:
            return placed, written
        room -= over
    return _place(context, "", taken), nothing


def _write(context: Context, entries: Sequence[Entry], room: int, where: str) -> Written:
    """Write the ledger for the frame that carries it.

    In a frame, a place without a step is one of the frame's own step. In an entry it is one of step 1.
    """
    place = _frame_place(context)
    step = context.step if place is None else step_of(context.rows[place].message.text)
    if step > 1:
        entries = [
            replace(entry, said_in=f"v1 {entry.said_in}") if entry.said_in.startswith("m") else entry
            for entry in entries
        ]
    asked = (tuple(entries), room, where)
    found = context.ledgers.get(asked)
    if found is None:
        written = ledger.write(entries, room, context.desk.count_text, where)
        # A text of a person may carry a NUL. In a message of ours it would make the whole list illegal.
        found = context.ledgers[asked] = replace(written, text=valid_text(written.text))
    return found


def _place(context: Context, text: str, taken: TakenOut) -> Context:
    """The context with this text in its first frame, and in no other one. A frame that was the same before is put back."""
    rows = list(context.rows)
    place = _frame_place(context)
    if place is None and text:
        place = next((unit.start for unit in context.units if not unit.pinned), len(rows))
        message = _said(frame(context.step, text, "", context.history_path))
        if context.native is not None and context.native.binds:
            # Between the block and signed thinking it would make the thinking invalid.
            place, message = len(rows), replace(message, role="user")
        rows.insert(place, Row(message, context.desk.count(message), None, "ledger"))
        return context.with_rows(rows, summaries=context.summaries | {text_hash(message.text)})
    own, folds = set(context.summaries), list(context.folds)
    for n, row in enumerate(rows):
        before = taken.rows.get(id(row.message))
        found = with_ledger(row.message.text, text) if n == place and text else row.message.text
        if before is not None and before.message.text == found:
            rows[n] = before
        elif found != row.message.text:
            rows[n] = _rewritten(row, found, context)
            own.add(text_hash(found))
            folds = [
                replace(fold, row=rows[n], text=found) if fold.row.message is row.message else fold
                for fold in folds
            ]
    return context.with_rows(rows, summaries=frozenset(own), folds=tuple(folds))


def _frame_place(context: Context) -> int | None:
    for n, row in enumerate(context.rows):
        message = row.message
        is_like_one = message.role == "assistant" and message.text.startswith(FRAME_OPENS)
        if is_like_one and context.is_summary(message):
            return n
    return None


def _rewritten(row: Row, text: str, context: Context) -> Row:
    """A frame's row with another text. A cache mark stays."""
    part = next(part for part in row.message.parts if isinstance(part, Text))
    origin = {**part.origin, "text": text} if isinstance(part.origin, dict) else None
    others = (each for each in row.message.parts if not isinstance(each, Text))
    message = row.message.with_parts((Text(text, origin=origin), *others))
    level: Level = "ledger" if text.startswith(LEDGER_OPENS) else "summary"
    return Row(message, context.desk.count(message), None, level)


def _said(text: str) -> Message:
    return Message("assistant", (Text(text),))
