"""What a compaction did to a session, in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.engine.context import Row
from compact.events import Archival, CallsShrunk, Offload, PrunedMessages
from compact.messages import Message, dialects
from compact.messages.dialects import Dialect
from compact.messages.legality import violations
from compact.messages.markers import SUMMARY_OPENS, is_pointer
from compact.runtime.manager import CompactManager
from compact.tokens import Meter
from compact.tools.transcripts import Session

LEVELS = {
    "whole": "as they were",
    "offloaded": "a preview, and where the whole is",
    "shrunk": "where the output or text is, and its first words",
    "cut": "head and tail",
    "summary": "in the place of everything that was folded",
    "marker": "so that user and assistant alternate",
    "mended": "no provider would have taken them",
}
"""How much of a message can stand in a context, and what then stands there."""


@dataclass(frozen=True, slots=True)
class Size:
    """A context: messages, tokens, their share of the window, and how many reasons a provider has to refuse it."""

    messages: int
    tokens: int
    usage_pct: float
    violations: int


@dataclass(frozen=True, slots=True)
class LevelShare:
    """The messages that stand at one level of detail."""

    level: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Moved:
    """A text that went to the archive: from which tool, where to, what it cost before and what its pointer costs."""

    tool: str
    path: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What was done to a session."""

    session: str
    dialect: str
    model: str
    window: int
    trigger: int
    before: Size
    after: Size
    changed: bool
    step: int | None
    """The step that was made, or the archive's own that was applied again; None when there is none."""
    applied_again: bool
    saved: Mapping[str, int]
    """Tokens by stage, in sum the difference of the sizes; `other`: repairs, markers, steps that were made earlier."""
    levels: Sequence[LevelShare]
    moved: Sequence[Moved]
    archive: str
    """Where the session's part of the archive is."""
    files: Sequence[str]
    """The names of everything that was written there."""
    summary: str | None
    messages: list[Any]
    """The context as it now stands."""


def compact_session(manager: CompactManager, session: Session, manual: bool = False) -> Compaction:
    """Sends a session through a manager; `manual` folds all that may be folded.

    Raises:
        CompactError: as `CompactManager.preflight` does.
    """
    given = session.messages
    events_before = len(manager.archive.events(session.id))
    saved_before = manager.get_compaction_stats()["by_strategy"]
    after = _sent_through(manager, session, manual)
    manager.flush()
    facts = [event.properties for event in manager.archive.events(session.id, events_before)]
    outcome = manager.last_outcome(session.id) if any(isinstance(f, PrunedMessages) for f in facts) else None
    latest = manager.archive.latest(session.id) if after is not given else None
    known = dialects.detect(given) if session.dialect is None else dialects.get(session.dialect)
    neutral = [known.read(item) for item in after]
    offloaded = {fact.tool_call_id for fact in facts if isinstance(fact, Offload)}
    levels = _levels(given, neutral, outcome.rows if outcome else [], offloaded)
    meter, window = Meter(manager.config.model), manager.estimate(given).max_tokens
    before, now = _size(manager, session, given, known), _size(manager, session, after, known)
    folder = f"/{manager.archive.folder(session.id)}/"
    addresses = [fact.file_path for fact in facts if isinstance(fact, Archival)]
    return Compaction(
        session=session.id,
        dialect=known.NAME,
        model=manager.config.model,
        window=window,
        trigger=manager.config.trigger_tokens(window),
        before=before,
        after=now,
        changed=after is not given,
        step=latest.step if latest else None,
        applied_again=latest is not None and outcome is None,
        saved=_saved(manager, saved_before, before.tokens - now.tokens),
        levels=_shares(levels, after, known, meter),
        moved=[
            Moved(fact.tool_name, fact.file_path, fact.tokens_before, fact.tokens_after)
            for fact in facts
            if isinstance(fact, Offload | CallsShrunk)
        ],
        archive=next((address.rpartition(folder)[0] + folder for address in addresses), ""),
        files=[address.rpartition(folder)[2] for address in addresses],
        summary=next((message.text for message in neutral if _is_summary(message)), None),
        messages=after,
    )


def _sent_through(manager: CompactManager, session: Session, manual: bool) -> list[Any]:
    after: list[Any]
    if manual:
        after = manager.manual_compact(
            session.id,
            session.messages,
            "by hand",
            session.tools,
            system=session.system,
            dialect=session.dialect,
        )
    else:
        after = manager.preflight(
            session.id, session.messages, session.tools, system=session.system, dialect=session.dialect
        )
    return after


def _saved(manager: CompactManager, before: Mapping[str, int], total: int) -> dict[str, int]:
    stats = manager.get_compaction_stats()["by_strategy"]
    gains = {stage: tokens - before.get(stage, 0) for stage, tokens in stats.items()}
    gains["other"] = total - sum(gains.values())
    return {stage: tokens for stage, tokens in gains.items() if tokens}


def _size(manager: CompactManager, session: Session, items: list[Any], dialect: Dialect) -> Size:
    cost = manager.estimate(items, session.tools, system=session.system)
    return Size(len(items), cost.total, cost.usage_pct, len(violations(items, dialect.NAME)))


def _levels(
    given: Sequence[Any], after: Sequence[Message], rows: Sequence[Row], offloaded: set[str]
) -> list[str]:
    """The level of each message: as the pass says, and for what was changed before it, or long ago, as it looks."""
    untouched = {id(item) for item in given}
    found: list[str] = []
    for place, message in enumerate(after):
        level: str = rows[place].level if rows else "whole"
        if level == "whole" and id(message.origin) not in untouched:
            level = _look(message, offloaded)
        found.append(level)
    return found


def _look(message: Message, offloaded: set[str]) -> str:
    if _is_summary(message):
        return "summary"
    if any(result.call_id in offloaded for result in message.results):
        return "offloaded"
    texts = [result.text for result in message.results]
    texts += [str(value) for call in message.calls for value in (call.parsed_arguments() or {}).values()]
    return "shrunk" if any(map(is_pointer, texts)) else "mended"


def _is_summary(message: Message) -> bool:
    return message.text.startswith(SUMMARY_OPENS)


def _shares(levels: Sequence[str], items: Sequence[Any], dialect: Dialect, meter: Meter) -> list[LevelShare]:
    sizes: dict[str, list[int]] = {}
    for level, item in zip(levels, items, strict=True):
        sizes.setdefault(level, []).append(meter.count_item(item, dialect))
    return [
        LevelShare(level, len(sizes[level]), meter.scale(sum(sizes[level])))
        for level in LEVELS
        if level in sizes
    ]
