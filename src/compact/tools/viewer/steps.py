"""The steps of an archived session, for the page. Content is only returned for one message at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from compact.archive import Archive, Step
from compact.engine.state import Sides
from compact.errors import ArchiveError, CompactError
from compact.events import Offload, PrunedMessages
from compact.messages import (
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    dialects,
    to_json,
)
from compact.summaries import ledger
from compact.tokens import Meter
from compact.tools.viewer.comparing import LEVELS, Pair, compare, find_cited, places

Side: TypeAlias = Literal["before", "after"]

MAX_TEXT_CHARS = 400_000
_CACHED = 6
_FALLBACK_MODEL = "gpt-4o"


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step in a list."""

    step: int
    committed_at: str | None = None
    dialect: str | None = None
    messages: int | None = None
    bytes: int | None = None
    """Size of the transcript."""
    pruned_at: str | None = None
    tokens_after: int | None = None
    problem: str | None = None
    """Why the step cannot be read."""


def step_row(archive: Archive, folder: str, number: int) -> StepRow:
    """Describe a step. If it cannot be read, `problem` says why."""
    try:
        step = archive.step_in(folder, number)
    except ArchiveError as error:
        return StepRow(number, problem=error.message)
    transcript = step.files["transcript"]
    return StepRow(
        step=number,
        committed_at=step.committed_at,
        dialect=step.dialect,
        messages=transcript.lines,
        bytes=transcript.bytes,
        pruned_at=step.pruned_at,
        tokens_after=step.state.get("tokens_after"),
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """A message on one side of a comparison."""

    message: Message
    tokens: int
    tools: tuple[str, ...]
    """The tools that it calls, or whose results it contains."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A step with both sides."""

    step: Step
    before: list[Standing]
    after: list[Standing]
    pairs: list[Pair]
    summary: Mapping[str, Any]
    given: int
    """Messages in the host's list, which `restore` returns. Repairs come between that list and `before`."""
    is_exact: bool
    """False: an earlier version wrote the record, so which messages stood is partly guessed."""

    def to_json(self) -> dict[str, Any]:
        """Everything but the content."""
        return {
            "step": self.step.step,
            "committed_at": self.step.committed_at,
            "dialect": self.step.dialect,
            "given": self.given,
            "exact": self.is_exact,
            "tokens_before": sum(each.tokens for each in self.before),
            "tokens_after": sum(each.tokens for each in self.after),
            "before": [_outline(each) for each in self.before],
            "after": [_outline(each) for each in self.after],
            "pairs": [[pair.before, pair.after, pair.level] for pair in self.pairs],
            "levels": self._levels(),
            "summaries": [
                {key: value for key, value in each.items() if key not in ("text", "struck")}
                for each in self.summary.get("summaries", [])
            ],
        }

    def _levels(self) -> list[dict[str, Any]]:
        found = {level: {"level": level, "messages": 0, "before": 0, "after": 0} for level in LEVELS}
        for pair in self.pairs:
            row: dict[str, Any] = found[pair.level]
            row["messages"] += 1
            row["before"] += self.before[pair.before].tokens if pair.before is not None else 0
            row["after"] += self.after[pair.after].tokens if pair.after is not None else 0
        return [row for row in found.values() if row["messages"]]


class StepReader:
    """Reads the steps of an archive. Steps never change, so the latest comparisons are cached."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._compare = lru_cache(maxsize=_CACHED)(self._make_comparison)

    def rows(self, folder: str) -> list[dict[str, Any]]:
        """List the steps of a session. One that cannot be read says why."""
        return [asdict(step_row(self._archive, folder, number)) for number in self._archive.steps_in(folder)]

    def compare(self, folder: str, number: int, model: str | None) -> Comparison:
        """Compare both sides of a step.

        Raises:
            ArchiveError: there is no such step, it was pruned, or it is damaged.
        """
        return self._compare(folder, number, model or _FALLBACK_MODEL)

    def message(self, folder: str, number: int, model: str | None, side: Side, place: int) -> dict[str, Any]:
        """Return the content of one message.

        Raises:
            ArchiveError: as `compare`, or there is no such message.
        """
        found = self.compare(folder, number, model)
        standing = found.before if side == "before" else found.after
        if not 0 <= place < len(standing):
            raise ArchiveError(
                f"step {number} has {len(standing)} messages {side}, none at {place}", reason="missing"
            )
        message = standing[place].message
        return {**_outline(standing[place]), "parts": [_show(part) for part in message.parts]}

    def summaries(self, folder: str, number: int, model: str | None) -> list[dict[str, Any]]:
        """Return the summaries of a step, line by line, with the place of the message that each line is about."""
        found = self.compare(folder, number, model)
        before = [each.message for each in found.before]
        gone = [pair.before for pair in found.pairs if pair.level == "summarized" and pair.before is not None]
        shown = []
        for each in found.summary.get("summaries", []):
            first, last = each["positions"]
            covered = [n for n in gone if first <= n <= last]
            lines = zip(
                each["text"].split("\n"), find_cited(each["text"], before, covered, number), strict=True
            )
            shown.append({**each, "lines": [{"text": text, "message": place} for text, place in lines]})
        return shown

    def ledger(self, folder: str) -> list[dict[str, Any]]:
        """List what people said and what stands of it after the newest step, without the words.

        Raises:
            ArchiveError: it cannot be read.
        """
        return [
            {
                **{
                    name: value
                    for name, value in ledger.to_json(entry).items()
                    if name not in ("text", "answers", "was")
                },
                "chars": len(entry.text),
                "asked": entry.answers is not None,
            }
            for entry in self._archive.ledger_in(folder)
        ]

    def entry(self, folder: str, entry_id: str) -> dict[str, Any]:
        """Return one entry of the ledger with its words.

        Raises:
            ArchiveError: there is no such entry.
        """
        for entry in self._archive.ledger_in(folder):
            if entry.id == entry_id:
                return ledger.to_json(entry)
        raise ArchiveError(f"the ledger has no entry {entry_id!r:.40}", reason="missing")

    def file(self, folder: str, path: str) -> dict[str, Any]:
        """Return a file that the session's agent can read, by its virtual path; only the beginning if it is very long.

        Raises:
            ArchiveError: there is no such file.
        """
        text = self._archive.read_text_in(folder, path)
        return {"path": path, "chars": len(text), "text": text[:MAX_TEXT_CHARS]}

    def _make_comparison(self, folder: str, number: int, model: str) -> Comparison:
        archive, step = self._archive, self._archive.step_in(folder, number)
        summary = archive.summary_in(folder, step)
        recorded = archive.sides_in(folder, step)
        sides = self._guess_sides(folder, step, model) if recorded is None else recorded
        read = _reader(step.dialect)
        before = [read(item) for item in sides.before]
        after = [read(item) for item in sides.after]
        pairs = compare(
            before,
            [message if place is None else place for message, place in zip(after, sides.places, strict=True)],
            levels=sides.levels,
            offloaded=self._offloaded(folder, number),
            summaries=[
                tuple(each["positions"]) for each in summary.get("summaries", []) if each["writer"] != "none"
            ],
        )
        names = {call.id: call.name for message in before for call in message.calls}

        def standing(message: Message, tokens: int) -> Standing:
            tools = [call.name for call in message.calls]
            tools += [result.name or names.get(result.call_id, "") for result in message.results]
            return Standing(message, tokens, tuple(filter(None, tools)))

        return Comparison(
            step=step,
            before=list(map(standing, before, sides.tokens_before)),
            after=list(map(standing, after, sides.tokens_after)),
            pairs=pairs,
            summary=summary,
            given=step.files["transcript"].lines,
            is_exact=recorded is not None,
        )

    def _guess_sides(self, folder: str, step: Step, model: str) -> Sides:
        """Rebuild both sides of a step whose record was written by an earlier version."""
        before = self._archive.transcript_in(folder, step)
        recipe = list(step.state.get("recipe", []))
        replaced = step.state.get("replaced", len(before))
        places_of = places(recipe, replaced, len(before), self._previous(folder, step.step))
        standing = [entry for entry in recipe if not isinstance(entry, int) or entry in places_of]
        found = [places_of[entry] if isinstance(entry, int) else None for entry in standing]
        after = [
            entry["item"] if place is None else before[place]
            for place, entry in zip(found, standing, strict=True)
        ]
        meter, dialect = Meter(model), dialects.get(step.dialect)
        sizes = [[_tokens(item, meter, dialect) for item in side] for side in (before, after)]
        return Sides(before, after, found, [None] * len(after), *sizes)

    def _previous(self, folder: str, number: int) -> Mapping[str, Any] | None:
        try:
            state = self._archive.step_in(folder, number - 1).state
        except ArchiveError:
            return None
        return state if "recipe" in state and "replaced" in state else None

    def _offloaded(self, folder: str, number: int) -> frozenset[str]:
        """Find the calls whose results were offloaded after the step before this one."""
        found: set[str] = set()
        for event in self._archive.events_in(folder):
            if isinstance(event.properties, Offload):
                found.add(event.properties.tool_call_id)
            elif isinstance(event.properties, PrunedMessages):
                if event.step == number:
                    break
                found.clear()
        return frozenset(found)


def _reader(dialect: str) -> Callable[[Any], Message]:
    known = dialects.get(dialect)

    def read(item: Any) -> Message:
        try:
            return known.read(item)
        except CompactError:
            role = str(item.get("role", "?")) if isinstance(item, Mapping) else "?"
            return Message(role, (Opaque("unreadable", item),), origin=item)

    return read


def _tokens(item: Any, meter: Meter, dialect: dialects.Dialect) -> int:
    try:
        return meter.scale(meter.count_item(item, dialect))
    except CompactError:
        return 0


def _outline(each: Standing) -> dict[str, Any]:
    """Describe a message without its content."""
    message = each.message
    return {
        "role": message.role,
        "tokens": each.tokens,
        "tools": list(each.tools),
        "calls": len(message.calls),
        "results": len(message.results),
        "turn": message.starts_turn,
    }


def _show(part: Part) -> dict[str, Any]:
    match part:
        case Text(text=text) | Refusal(text=text) | Reasoning(text=text):
            return {"kind": part.kind, "text": text[:MAX_TEXT_CHARS]}
        case ToolCall():
            arguments = part.arguments_text[:MAX_TEXT_CHARS]
            return {"kind": "call", "name": part.name, "id": part.id, "text": arguments}
        case ToolResult():
            inner = [_show(each) for each in part.content]
            return {"kind": "result", "id": part.call_id, "error": part.is_error, "parts": inner}
        case Image(source=source):
            inline = f"{len(source):,} characters inline"
            return {"kind": "image", "text": source[:200] if source.startswith("http") else inline}
        case Opaque():
            return {"kind": part.type, "text": to_json(part.origin)[:MAX_TEXT_CHARS]}
