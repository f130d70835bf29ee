"""What a compaction did to a session: the numbers, and how they are printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from compact.engine.context import Row
from compact.events import Archival, CallsShrunk, Offload, PrunedMessages
from compact.messages import Message, dialects
from compact.messages.dialects import Dialect
from compact.messages.legality import violations
from compact.messages.message import LEDGER_OPENS, SUMMARY_OPENS
from compact.runtime.manager import CompactManager
from compact.tokens import Meter
from compact.tools.cli.printing import count_of, one_line, print_table
from compact.tools.transcripts import RecordedSession
from compact.tools.viewer.comparing import reduced_level

LEVELS = {
    "whole": "as they were",
    "offloaded": "a preview, and where the whole is",
    "shrunk": "where the output or text is, and its first words",
    "cut": "head and tail",
    "summary": "in the place of everything that was folded",
    "ledger": "the user's words, where there is no summary",
    "marker": "so that user and assistant alternate",
    "mended": "no provider would have taken them",
}
"""The levels of detail that a message can have in a context, and what the context then holds."""
STAGES = {
    "offload": "large tool outputs moved to files",
    "compact": "old tool outputs and written texts became pointers",
    "summarize": "the oldest part became a summary",
    "truncate": "oversized messages cut, the oldest left out",
    "other": "repairs, markers, steps that were made earlier",
}
"""What each stage of a compaction does."""
FILES = {
    "transcript-": "the session as it was, message for message",
    "conversation_history/removed_": "what repairs removed or changed, as it was",
    "conversation_history/": "the session as a page, for reading and grep",
    "summary-": "the summaries that the step wrote, if any, and what they cover",
    "state-": "what the next call needs",
}
"""What a step writes, by how the file names begin. The first that fits counts."""
MOVED_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The size of a context, and how many reasons a provider has to refuse it."""

    messages: int
    tokens: int
    usage_pct: float
    violations: int


@dataclass(frozen=True, slots=True)
class LevelShare:
    """The messages at one level of detail."""

    level: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Moved:
    """A text that moved to the archive: its tool, its path, its size, and the size of its pointer."""

    tool: str
    path: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What a compaction did to a session."""

    session: str
    dialect: str
    model: str
    window: int
    trigger: int
    before: ContextSize
    after: ContextSize
    changed: bool
    step: int | None
    """The step that was made, or the archived one that was applied again; None if neither."""
    applied_again: bool
    saved: Mapping[str, int]
    """Tokens by stage. They add up to the difference of the two sizes."""
    levels: Sequence[LevelShare]
    moved: Sequence[Moved]
    archive: str
    """The address of the session in the archive."""
    files: Sequence[str]
    """The names of the files that were written there."""
    summary: str | None
    messages: list[Any]
    """The context after the compaction."""

    def to_json(self) -> dict[str, Any]:
        """The report for programs, without the messages."""
        return {key: value for key, value in asdict(self).items() if key != "messages"}


def compact_session(manager: CompactManager, session: RecordedSession, manual: bool = False) -> Compaction:
    """Compact a session with a manager. `manual` folds everything that is eligible.

    Raises:
        CompactError: as `CompactManager.preflight` does.
    """
    given, archive = session.messages, manager.archive
    events_before = len(archive.events(session.id))
    saved_before = manager.get_compaction_stats()["by_strategy"]
    if manual:
        after: list[Any] = manager.manual_compact(session.id, given, "by hand", **session.request)
    else:
        after = manager.preflight(session.id, given, **session.request)
    manager.flush()
    facts = [event.properties for event in archive.events(session.id, events_before)]
    outcome = manager.last_outcome(session.id) if any(isinstance(f, PrunedMessages) for f in facts) else None
    latest = archive.latest(session.id) if after is not given else None
    known = dialects.detect(given) if session.dialect is None else dialects.get(session.dialect)
    neutral = [known.read(item) for item in after]
    offloaded = {fact.tool_call_id for fact in facts if isinstance(fact, Offload)}
    levels = _levels(given, neutral, outcome.rows if outcome else [], offloaded)
    window = manager.estimate(given).max_tokens
    before, now = _size(manager, session, given, known), _size(manager, session, after, known)
    folder = f"/{archive.folder(session.id)}/"
    addresses = [fact.file_path.rpartition(folder) for fact in facts if isinstance(fact, Archival)]
    return Compaction(
        session=session.label,
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
        levels=_shares(levels, after, known, manager.meter()),
        moved=[
            Moved(fact.tool_name, fact.file_path, fact.tokens_before, fact.tokens_after)
            for fact in facts
            if isinstance(fact, Offload | CallsShrunk)
        ],
        archive="".join(addresses[0][:2]) if addresses else "",
        files=[name for _, _, name in addresses],
        summary=next((message.text for message in neutral if _is_summary(message)), None),
        messages=after,
    )


def _saved(manager: CompactManager, before: Mapping[str, int], total: int) -> dict[str, int]:
    stats = manager.get_compaction_stats()["by_strategy"]
    gains = {stage: tokens - before.get(stage, 0) for stage, tokens in stats.items()}
    gains["other"] = total - sum(gains.values())
    return {stage: tokens for stage, tokens in gains.items() if tokens}


def _size(
    manager: CompactManager, session: RecordedSession, items: list[Any], dialect: Dialect
) -> ContextSize:
    cost = manager.estimate(items, session.tools, system=session.system)
    return ContextSize(len(items), cost.total, cost.usage_pct, len(violations(items, dialect.NAME)))


def _levels(
    given: Sequence[Any], after: Sequence[Message], rows: Sequence[Row], offloaded: set[str]
) -> list[str]:
    """Find the level of each message: as the pass says, or by its looks if it was changed before that pass."""
    untouched = {id(item) for item in given}
    found: list[str] = []
    for place, message in enumerate(after):
        level: str = rows[place].level if rows else "whole"
        if level == "whole" and id(message.origin) not in untouched:
            level = _frame_level(message) or reduced_level(message, offloaded)
        found.append(level)
    return found


def _is_summary(message: Message) -> bool:
    return message.text.startswith(SUMMARY_OPENS)


def _frame_level(message: Message) -> str:
    if _is_summary(message):
        return "summary"
    return "ledger" if message.text.startswith(LEDGER_OPENS) else ""


def _shares(levels: Sequence[str], items: Sequence[Any], dialect: Dialect, meter: Meter) -> list[LevelShare]:
    sizes: dict[str, list[int]] = {}
    for level, item in zip(levels, items, strict=True):
        sizes.setdefault(level, []).append(meter.count_item(item, dialect))
    return [
        LevelShare(level, len(sizes[level]), meter.scale(sum(sizes[level])))
        for level in LEVELS
        if level in sizes
    ]


def print_compaction(out: Console, done: Compaction) -> None:
    """Print what was done: before and after, what each stage saved, what is left, and what went where."""
    out.print(f"Session {one_line(done.session, 60)}: {done.dialect}, for {done.model}")
    out.print(_outcome(done) + "\n")
    print_sizes(out, {"before": done.before, "after": done.after} if done.changed else {"": done.before})
    if done.changed:
        print_stages(out, done)
        print_levels(out, done)
    if done.changed and done.files:
        _print_places(out, done)


def _outcome(done: Compaction) -> str:
    start = f"compaction starts at {done.trigger:,} of {done.window:,} tokens"
    if done.applied_again:
        return f"Step {done.step} in the archive is about this session: it was applied again"
    if done.step is not None:
        return f"Compacted, as step {done.step}; {start}"
    if done.changed:
        return f"Put in order, not compacted; {start}"
    if done.before.tokens < done.trigger:
        return f"Nothing to do: {start}"
    return "Nothing could be saved: all of it is recent or protected"


def print_sizes(out: Console, sizes: Mapping[str, ContextSize]) -> None:
    """Print a row for each state of a session."""
    columns = ("", ">messages", ">tokens", ">of window", "a provider would")
    rows = [
        (name, size.messages, size.tokens, f"{size.usage_pct:.1%}", _verdict(size))
        for name, size in sizes.items()
    ]
    print_table(out, columns, rows)


def _verdict(size: ContextSize) -> str:
    reasons = ["too long"] if size.usage_pct > 1 else []
    if size.violations:
        reasons.append(count_of(size.violations, "violation"))
    return f"refuse it: {', '.join(reasons)}" if reasons else "take it"


def print_stages(out: Console, done: Compaction) -> None:
    """Print what each stage saved."""
    if done.saved:
        rows = [(stage, tokens, STAGES.get(stage, "")) for stage, tokens in done.saved.items()]
        print_table(out, ("stage", ">saved", "~how"), rows, "What each stage saved, in tokens")


def print_levels(out: Console, done: Compaction) -> None:
    """Print how much of the messages is still in the context."""
    rows = [(share.level, share.messages, share.tokens, LEVELS[share.level]) for share in done.levels]
    standing = sum(share.messages for share in done.levels if share.level not in ("summary", "marker"))
    if standing < done.before.messages:
        gone = done.before.messages - standing
        rows.append(("gone", gone, 0, "nothing: in the summary, or only in the archive"))
    print_table(out, ("level", ">messages", ">tokens", "~what stands"), rows, "What stands in the context")


def _print_places(out: Console, done: Compaction) -> None:
    where = "" if done.archive.startswith("memory:") else f", in {done.archive}"
    kinds = list(FILES)
    known = {name: start for start in reversed(kinds) for name in done.files if name.startswith(start)}
    rows = [(name, FILES[known[name]]) for name in sorted(known, key=lambda name: kinds.index(known[name]))]
    if done.moved:
        tokens = sum(moved.tokens_before for moved in done.moved)
        largest = "" if len(done.moved) <= MOVED_SHOWN else "; the largest:"
        rows.append(("tool_outputs/", f"{count_of(len(done.moved), 'text')}, {tokens:,} tokens{largest}"))
    print_table(out, ("file", "~what"), rows, f"What went where{where}")
    moved = sorted(done.moved, key=lambda moved: (-moved.tokens_before, moved.path))[:MOVED_SHOWN]
    print_table(out, (">", "~"), [(each.tokens_before, each.path) for each in moved])
