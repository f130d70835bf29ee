"""`compact count`: how many tokens a transcript takes, and what takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from compact.config import CompactConfig
from compact.messages import Message, ToolCall, ToolResult, dialects
from compact.tokens import Estimate, Meter
from compact.tokens.models import Profile, model_table
from compact.tokens.windows import window_of
from compact.tools.cli.inputs import errors_named, read_tools, sessions_of
from compact.tools.cli.options import (
    ConfigOption,
    DialectOption,
    FileArgument,
    JsonOption,
    LenientOption,
    ModelOption,
)
from compact.tools.cli.printing import console, count_of, one_line, print_json, print_table
from compact.tools.cli.settings import load_settings
from compact.tools.transcripts import RecordedSession

EXAMPLE = "Example: compact count session.jsonl --model gpt-4o"

LARGEST_SHOWN = 5
TOOLS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class RoleShare:
    """What the messages of one role take."""

    role: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolShare:
    """What one tool takes: the arguments of its calls, and its results."""

    tool: str
    calls: int
    call_tokens: int
    result_tokens: int

    @property
    def tokens(self) -> int:
        """Both together."""
        return self.call_tokens + self.result_tokens


@dataclass(frozen=True, slots=True)
class LargeMessage:
    """One of the largest messages: its index, and how it begins."""

    index: int
    role: str
    tokens: int
    begins: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """A session in numbers."""

    session: str
    format: str
    dialect: str
    model: str
    exact: bool
    """Whether the model's own tokenizer counted; otherwise the numbers are estimates, rounded up."""
    messages: int
    tokens: int
    window: int
    window_known: bool
    trigger: int
    roles: Sequence[RoleShare]
    tools: Sequence[ToolShare]
    tools_schema: int
    largest: Sequence[LargeMessage]

    @property
    def usage(self) -> float:
        """The share of the window that is used."""
        return self.tokens / self.window

    def share(self, tokens: int) -> str:
        """A number of tokens as a percentage of the session."""
        return f"{tokens / self.tokens:.1%}" if self.tokens else ""


def command(
    file: FileArgument,
    model: ModelOption = None,
    tools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON file with the tool schemas of the request.")
    ] = None,
    dialect: DialectOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Count the tokens of a transcript.

    One session: the total, by role and by tool, and the largest messages. Several: one row each, and their sum.
    """
    schemas = None if tools is None else read_tools(tools)
    settings = load_settings(config)
    found: list[Measurement] = []
    for session in sessions_of(file, lenient):
        with errors_named(session):
            found.append(measure(session, settings, model, schemas, dialect))
    if as_json:
        sessions = [{**asdict(each), "usage_pct": round(each.usage, 6)} for each in found]
        print_json({"file": str(file), "sessions": sessions, "tokens": sum(each.tokens for each in found)})
    elif len(found) == 1:
        _print_one(console(), found[0])
    else:
        _print_totals(console(), found)


def measure(
    session: RecordedSession,
    config: CompactConfig,
    model: str | None = None,
    tools: list[Any] | None = None,
    dialect: str | None = None,
) -> Measurement:
    """Measure a session for the given model, else for the session's own, else for the configured one.

    Raises:
        MessageError: the messages are not of a known dialect.
    """
    model = model or session.model or config.model
    table = model_table().with_rows(config.models)
    meter = _meter(model, config.meter.memo_bytes, table.profile(model))
    window = window_of(model, configured=config.max_context_tokens, windows=config.windows, table=table)
    known, neutral = dialects.read(session.messages, dialect or session.dialect)
    total = meter.estimate(
        session.messages,
        tools=session.tools if tools is None else tools,
        system=session.system,
        dialect=known.NAME,
        max_tokens=window.tokens,
    )
    sizes = [meter.count_item(item, known) for item in session.messages]
    return Measurement(
        session=session.label,
        format=session.format,
        dialect=known.NAME,
        model=model,
        exact=meter.exact,
        messages=len(neutral),
        tokens=total.total,
        window=window.tokens,
        window_known=window.known,
        trigger=config.trigger_tokens(window.tokens),
        roles=_by_role(neutral, sizes, meter, total),
        tools=_by_tool(neutral, meter),
        tools_schema=total.tools_schema,
        largest=_largest(neutral, sizes, meter),
    )


@cache
def _meter(model: str, memo_bytes: int, profile: Profile) -> Meter:
    """One meter per model, because a meter remembers what it has counted."""
    return Meter(model, memo_bytes=memo_bytes, profile=profile)


def _by_role(
    messages: Sequence[Message], sizes: Sequence[int], meter: Meter, total: Estimate
) -> list[RoleShare]:
    counts = Counter(map(_role, messages))
    tokens: Counter[str] = Counter()
    for message, size in zip(messages, sizes, strict=True):
        tokens[_role(message)] += size
    rows = [RoleShare(role, count, meter.scale(tokens[role])) for role, count in counts.items()]
    outside = total.system - sum(row.tokens for row in rows if row.role == "system")
    if outside > 0:
        rows.append(RoleShare("system prompt", 0, outside))
    return sorted(rows, key=lambda row: (-row.tokens, row.role))


def _role(message: Message) -> str:
    # Anthropic puts results into the user role; a reader of the table wants to see them apart.
    return "tool" if message.results else message.role


def _by_tool(messages: Sequence[Message], meter: Meter) -> list[ToolShare]:
    names: dict[str, str] = {}
    calls: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    returned: Counter[str] = Counter()
    last_name = ""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                names[part.id] = last_name = part.name or "(no name)"
                calls[last_name] += 1
                sent[last_name] += meter.count_text(part.arguments_text)
            elif isinstance(part, ToolResult):
                name = last_name if part.by_position else names.get(part.call_id)
                returned[part.name or name or "(no call)"] += meter.count_text(part.text)
    rows = [
        ToolShare(name, calls[name], meter.scale(sent[name]), meter.scale(returned[name]))
        for name in {**calls, **returned}
    ]
    return sorted(rows, key=lambda row: (-row.tokens, row.tool))


def _largest(messages: Sequence[Message], sizes: Sequence[int], meter: Meter) -> list[LargeMessage]:
    order = sorted(range(len(messages)), key=lambda index: (-sizes[index], index))[:LARGEST_SHOWN]
    return [
        LargeMessage(i, _role(messages[i]), meter.scale(sizes[i]), _beginning(messages[i])) for i in order
    ]


def _beginning(message: Message) -> str:
    if message.text:
        return message.text
    if message.results:
        return message.results[0].text
    return "; ".join(f"{call.name} {call.arguments_text}" for call in message.calls)


def _print_one(out: Console, found: Measurement) -> None:
    out.print(
        f"Session {one_line(found.session, 60)}: {count_of(found.messages, 'message')}, {found.dialect}"
    )
    out.print(
        f"{found.tokens:,} tokens for {found.model}{'' if found.exact else ' (an estimate, rounded up)'}"
    )
    origin = "" if found.window_known else " (assumed: the model is unknown)"
    reached = "reached" if found.tokens >= found.trigger else "not reached"
    out.print(
        f"{found.usage:.1%} of its window of {found.window:,}{origin}; "
        f"compaction starts at {found.trigger:,}: {reached}"
    )
    roles = [(row.role, row.messages or None, row.tokens) for row in found.roles]
    roles.append(("tools schema", None, found.tools_schema))
    rest = found.tokens - sum(tokens for _, _, tokens in roles)
    roles.append(("request" if found.exact else "request, rounding", None, rest))
    shares = [(*row, found.share(row[2])) for row in roles if row[1] or row[2]]
    shares.append(("total", found.messages, found.tokens, ""))
    print_table(out, ("role", ">messages", ">tokens", ">share"), shares, "By role")
    if found.tools:
        _print_tools(out, found)
    if found.largest:
        columns = (">message", "role:32", ">tokens", ">share", "~begins:44")
        rows = [
            (str(row.index), row.role, row.tokens, found.share(row.tokens), row.begins)
            for row in found.largest
        ]
        print_table(out, columns, rows, "Largest messages")


def _print_tools(out: Console, found: Measurement) -> None:
    shown, rest = list(found.tools[:TOOLS_SHOWN]), found.tools[TOOLS_SHOWN:]
    if rest:
        calls, sent = sum(row.calls for row in rest), sum(row.call_tokens for row in rest)
        returned = sum(row.result_tokens for row in rest)
        shown.append(ToolShare(f"{len(rest)} others", calls, sent, returned))
    columns = ("tool:32", ">calls", ">in calls", ">in results", ">tokens", ">share")
    rows = [
        (row.tool, row.calls, row.call_tokens, row.result_tokens, row.tokens, found.share(row.tokens))
        for row in shown
    ]
    print_table(out, columns, rows, "By tool")


def _print_totals(out: Console, sessions: Sequence[Measurement]) -> None:
    rows = [(each.session, each.messages, each.tokens, f"{each.usage:.1%}") for each in sessions]
    messages, tokens = sum(row[1] for row in rows), sum(row[2] for row in rows)
    rows.append((count_of(len(sessions), "session"), messages, tokens, ""))
    print_table(out, ("~session:40", ">messages", ">tokens", ">of window"), rows)
