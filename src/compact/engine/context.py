"""What a stage works on: the rows of the context, the rules of the pass, and the desk that counts and masks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from compact.engine.effects import Asking
from compact.engine.limits import Rules
from compact.messages import Message, Text, ToolResult
from compact.messages.compaction_blocks import has_block
from compact.messages.dialects import Dialect
from compact.messages.legality import gap_before, role_gaps
from compact.messages.message import POINTER_OPENS, RECALL_OPENS, text_hash
from compact.messages.units import Unit
from compact.messages.units import units as units_of

if TYPE_CHECKING:
    from compact.summaries.ledger import Entry
    from compact.summaries.ledger import Written as WrittenLedger
    from compact.summaries.needs import Spoken

Level: TypeAlias = Literal["whole", "offloaded", "shrunk", "cut", "summary", "ledger", "marker"]
"""How much of a message is still in the context."""
_WRITTEN = ("pointers", "recalled", "cut")
_REMEMBERED = 8_192
"""More do not stand in any context."""


@dataclass(frozen=True, slots=True)
class Row:
    """One message of the context, what it costs, and where it came from."""

    message: Message
    tokens: int
    """Raw tokens."""
    source: int | None
    """Its index in the host's list, as long as it is the host's own object."""
    level: Level = "whole"
    masked: Message | None = field(default=None, compare=False, repr=False)
    """The message without secrets, if that is a different one."""
    bare_of: Message | None = field(default=None, compare=False, repr=False)
    """The host's own message, if this one is it without its signed thinking."""

    @property
    def own(self) -> Message:
        """The message as the host has it, or as compact wrote it."""
        return self.message if self.bare_of is None else self.bare_of

    @property
    def quotable(self) -> Message:
        """The form that a summary may quote."""
        return self.message if self.masked is None else self.masked


class Written:
    """The texts that compact wrote into one session's tool results and arguments, known by their hashes. Thread-safe.

    Any tool can begin a text like one of ours, so first words prove nothing. A text is ours if its hash was recorded when it
    was written, in this process or in the state of the session's newest step. Everything else is a tool's text like any other.
    The newest `_REMEMBERED` of each kind are known.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, None]] = {kind: {} for kind in _WRITTEN}
        self._lock = threading.Lock()

    @property
    def pointers(self) -> frozenset[str]:
        """Hashes of the pointers, with or without an excerpt."""
        with self._lock:
            return frozenset(self._known["pointers"])

    def is_pointer(self, text: str) -> bool:
        """Whether compact put this text in place of another one that is in the archive."""
        return text.startswith(POINTER_OPENS) and text_hash(text) in self._known["pointers"]

    def is_recalled(self, text: str) -> bool:
        """Whether a recall tool of this session answered with this text. It is never moved to the archive again."""
        return text.startswith(RECALL_OPENS) and text_hash(text) in self._known["recalled"]

    def is_reduced(self, text: str) -> bool:
        """Whether compact took something out of this text."""
        if POINTER_OPENS not in text:
            return False
        known = text_hash(text)
        return known in self._known["pointers"] or known in self._known["cut"]

    def note_pointer(self, text: str) -> None:
        """Remember a pointer that compact wrote."""
        self._note("pointers", text_hash(text))

    def note_recalled(self, text: str) -> None:
        """Remember the answer of a recall tool."""
        self._note("recalled", text_hash(text))

    def note_cut(self, text: str) -> None:
        """Remember a text that compact cut."""
        self._note("cut", text_hash(text))

    def describe(self, messages: Iterable[Message]) -> dict[str, list[str]]:
        """The hashes of those texts that stand in these messages, for the record of a step."""
        texts = (text for message in messages for text in texts_in(message))
        standing = {
            text_hash(text) for text in texts if POINTER_OPENS in text or text.startswith(RECALL_OPENS)
        }
        with self._lock:
            return {kind: sorted(standing & known.keys()) for kind, known in self._known.items()}

    def adopt(self, record: Mapping[str, Sequence[str]]) -> None:
        """Take over what `describe` returned when a step was recorded. Records of earlier versions have nothing."""
        for kind in _WRITTEN:
            for known in record.get(kind, ()):
                self._note(kind, known)

    def _note(self, kind: str, known: str) -> None:
        with self._lock:
            hashes = self._known[kind]
            hashes.pop(known, None)
            hashes[known] = None
            if len(hashes) > _REMEMBERED:
                del hashes[next(iter(hashes))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """How a stage counts and masks, and the numbers of the configuration that it needs."""

    dialect: Dialect
    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    gauge_text: Callable[[str], int]
    """`count_text`, but quick for a text that is too long to count."""
    scale: Callable[[int], int]
    """Turns raw tokens into the model's own, for what people are told."""
    redact: Callable[[str], str]
    """Masks what compact writes into a context, so that it is the same after a restart. Matches rules only: its input is
    masked, and it quotes people."""
    redact_output: Callable[[str], str]
    """Masks what a tool said, also by what the session has learned."""
    rewrite: Callable[[Message], Message]
    """Returns the message as the host's list will have it: masked, written and read again."""
    large_result_tokens: int
    preview_lines: int
    preview_tokens: int
    write_tools: frozenset[str]
    excerpt_share: float
    """How much of an old text may stay beside its pointer."""
    fallback: Literal["extractive", "pruning-only"] = "extractive"
    """What replaces a summary that failed."""
    written: Written = field(default_factory=Written)
    """What compact wrote into the session's results and arguments."""

    def row(self, message: Message, level: Level) -> Row:
        """The row of a message that a stage changed."""
        written = message if self._is_ours(message) else self.rewrite(message)
        return Row(written, self.count(written), None, level)

    def _is_ours(self, message: Message) -> bool:
        """Whether compact wrote all of it. A result that is only a pointer is already masked."""
        if len(message.parts) != 1 or not isinstance(message.parts[0], ToolResult):
            return False
        content = message.parts[0].content
        return len(content) == 1 and isinstance(content[0], Text) and self.written.is_pointer(content[0].text)


@dataclass(frozen=True, slots=True)
class Fold:
    """A summary, ready to stand in the context, and what it was made from."""

    row: Row
    text: str
    input_tokens: int
    """Of the messages, and of the earlier summary that it takes in."""
    input_messages: int
    is_empty: bool
    """It says nothing and carries nothing, so it must not replace anything."""
    positions: tuple[int, int]
    """Positions of the first and the last message in the archived transcript."""
    step: int
    transcript: str
    """Where that transcript can be read."""
    writer: Literal["configured", "extractive", "native", "none"]
    """Who wrote the body. `native` means that the provider's block stands in the context, and the body where no model reads that.
    `none` means that there is only the frame, with the user's words and the path in the archive."""
    strategy: str
    struck: tuple[str, ...] = ()
    """Sentences that were taken out because they named what the input did not contain."""


@dataclass(frozen=True, slots=True)
class NativeBlock:
    """What the provider wrote in this pass in place of old messages."""

    message: Message
    """The message with the block."""
    extract: str
    """The summary that stands in its place where a model does not read it."""
    binds: bool = False
    """Whether what follows is as the model had it behind those messages, so that signed thinking there stays valid."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """One pass over a session, as a stage sees it. A stage returns a changed copy and never edits this one."""

    rows: Sequence[Row]
    rules: Rules
    """Tokens here are raw tokens of messages; compare them with `tokens`."""
    desk: Desk
    step: int
    """The step that the pass makes if it succeeds."""
    history_path: str
    """Where the agent can read the transcript as it was before the pass."""
    summaries: frozenset[str] = frozenset()
    """Hashes of the summaries that compact wrote in this session."""
    ledger: tuple[Entry, ...] = ()
    """What people said, up to this pass. What of it no message shows any more is written into the context behind the stages."""
    ledger_room: int = 0
    """The most tokens that this may take."""
    ledgers: dict[tuple[tuple[Entry, ...], int, str], WrittenLedger] = field(default_factory=dict, repr=False)
    """The ledgers that this pass wrote to learn what they cost, by their entries, their room and the path for what is left."""
    pins: int = 0
    """How many of the host's pins and unpins are in the ledger."""
    folds: tuple[Fold, ...] = ()
    """The summaries that this pass made."""
    native: NativeBlock | None = None
    """The provider's own compaction of this pass, or None."""
    extract: str = ""
    """The summary behind a block of an earlier pass that stands in the context."""
    saved: Mapping[str, int] = field(default_factory=dict)
    """Raw tokens saved so far, by stage. The ladder credits what a stage saves and does not credit itself."""
    at_first: Context | None = field(default=None, repr=False)
    """The context as the pass found it. None: this is it."""

    @cached_property
    def tokens(self) -> int:
        """Raw tokens of all rows."""
        return total(self.rows)

    @cached_property
    def values(self) -> Mapping[str, float]:
        """How likely each word of the session is to be needed, as the pass found it: what was reduced since counts as well."""
        if self.at_first is not None:
            return self.at_first.values
        from compact.summaries.needs import weigh  # only a pass needs them

        return weigh([spoken for row in self.rows for spoken in self._spoken(row)])

    def _spoken(self, row: Row) -> Iterator[Spoken]:
        from compact.summaries.record import spoken_again
        from compact.summaries.spoken import spoken_in

        return spoken_again(row.message.text) if self.is_summary(row.message) else spoken_in([row.quotable])

    @cached_property
    def units(self) -> list[Unit]:
        """The units of the rows, in order, without gaps."""
        messages = [row.message for row in self.rows]
        return units_of(messages, self.desk.dialect, is_pinned=self.is_pinned, is_summary=self.is_summary)

    @property
    def fits(self) -> bool:
        """Whether the target is reached. A manual compaction folds all that is eligible, so it never says so."""
        return not self.rules.fold_all and total(alternate(self.rows, self.desk)) <= self.rules.target

    def is_pinned(self, message: Message) -> bool:
        """Whether a message always stays."""
        return message.protected or message.role in self.rules.never_prune or has_block(message)

    def is_summary(self, message: Message) -> bool:
        """Whether compact wrote it as a summary in this session. Text that only looks like one is not."""
        return bool(self.summaries) and text_hash(message.text) in self.summaries

    def tokens_of(self, unit: Unit) -> int:
        """Raw tokens of one unit."""
        return sum(row.tokens for row in self.rows[unit.start : unit.stop])

    def with_rows(self, rows: Sequence[Row], **changes: Any) -> Context:
        """A copy with other rows."""
        return replace(self, rows=rows, at_first=self.at_first or self, **changes)

    def with_rules(self, rules: Rules) -> Context:
        """A copy with other rules. What was found out about the rows stays known."""
        found = replace(self, rules=rules)
        known = vars(self)
        vars(found).update({name: known[name] for name in ("tokens", "units") if name in known})
        return found

    def credit(self, stage: str, tokens: int) -> Context:
        """A copy that records what a stage saved."""
        if tokens <= 0:
            return self
        return replace(self, saved={**self.saved, stage: self.saved.get(stage, 0) + tokens})


Stage: TypeAlias = Callable[[Context], Asking[Context]]
"""One rung of the ladder: a generator function that takes a context and returns one.

It yields effects (`engine.effects`) for everything it needs from outside, and stores what it takes out before it does.
"""


def total(rows: Sequence[Row]) -> int:
    """Raw tokens of all rows."""
    return sum(row.tokens for row in rows)


def alternate(rows: Sequence[Row], desk: Desk) -> Sequence[Row]:
    """The rows with a marker wherever the dialect wants roles to alternate, and a user first."""
    gaps = set(role_gaps([row.message for row in rows], desk.dialect))
    if not gaps:
        return rows
    found: list[Row] = []
    for place, row in enumerate(rows):
        if place in gaps:
            marker = gap_before(row.message)
            found.append(Row(marker, desk.count(marker), None, "marker"))
        found.append(row)
    return found


def with_result_text(message: Message, place: int, text: str) -> Message:
    """A copy in which the result at `place` says `text`; its pictures stay."""
    parts = list(message.parts)
    result = parts[place]
    assert isinstance(result, ToolResult)
    others = tuple(part for part in result.content if not isinstance(part, Text))
    parts[place] = replace(result, content=(Text(text), *others))
    return message.with_parts(tuple(parts))


def texts_in(message: Message) -> Iterator[str]:
    """The tool results of a message, and the texts among the arguments of its calls."""
    for result in message.results:
        yield result.text
    for call in message.calls:
        values: dict[str, Any] = call.parsed_arguments() or {}
        yield from (value for value in values.values() if isinstance(value, str))


def tool_names(rows: Sequence[Row]) -> dict[str, str]:
    """The tool of every call id."""
    return {call.id: call.name for row in rows for call in row.message.calls}
