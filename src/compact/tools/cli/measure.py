"""How many tokens a session takes, and what takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compact.config import CompactConfig
from compact.messages import Message, ToolCall, ToolResult, dialects
from compact.tokens import Estimate, Meter
from compact.tokens.windows import window_of
from compact.tools.transcripts import Session

LARGEST_SHOWN = 5


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
    """One of the largest messages: its place, and how it begins."""

    index: int
    role: str
    tokens: int
    begins: str


@dataclass(frozen=True, slots=True)
class Measured:
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
        """The share of the window that is taken."""
        return self.tokens / self.window


class Measurer:
    """Measures sessions. Meters are kept, one per model: they remember what they have counted."""

    def __init__(self, config: CompactConfig, model: str | None = None) -> None:
        self._config = config
        self._model = model
        self._meters: dict[str, Meter] = {}

    def measure(
        self, session: Session, tools: list[Any] | None = None, dialect: str | None = None
    ) -> Measured:
        """The numbers of one session, under the given model, else the session's own, else the configured one.

        Raises:
            MessageError: the messages are not of a known dialect.
        """
        model = self._model or session.model or self._config.model
        meter = self._meter(model)
        window = window_of(model, configured=self._config.max_context_tokens, windows=self._config.windows)
        known, neutral = dialects.read(session.messages, dialect or session.dialect)
        schema = tools if tools is not None else session.tools
        total = meter.estimate(
            session.messages,
            tools=schema,
            system=session.system,
            dialect=known.NAME,
            max_tokens=window.tokens,
        )
        sizes = [meter.count_item(item, known) for item in session.messages]
        return Measured(
            session=session.id,
            format=session.format,
            dialect=known.NAME,
            model=model,
            exact=meter.exact,
            messages=len(neutral),
            tokens=total.total,
            window=window.tokens,
            window_known=window.known,
            trigger=self._config.trigger_tokens(window.tokens),
            roles=_by_role(neutral, sizes, meter, total),
            tools=_by_tool(neutral, meter),
            tools_schema=total.tools_schema,
            largest=_largest(neutral, sizes, meter),
        )

    def _meter(self, model: str) -> Meter:
        if model not in self._meters:
            self._meters[model] = Meter(model, memo_bytes=self._config.meter.memo_bytes)
        return self._meters[model]


def _by_role(
    messages: Sequence[Message], sizes: Sequence[int], meter: Meter, total: Estimate
) -> list[RoleShare]:
    found: dict[str, tuple[int, int]] = {}
    for message, size in zip(messages, sizes, strict=True):
        role = _role(message)
        count, tokens = found.get(role, (0, 0))
        found[role] = (count + 1, tokens + size)
    rows = [RoleShare(role, count, meter.scale(tokens)) for role, (count, tokens) in found.items()]
    outside = total.system - sum(row.tokens for row in rows if row.role == "system")
    if outside > 0:
        rows.append(RoleShare("system prompt", 0, outside))
    return sorted(rows, key=lambda row: (-row.tokens, row.role))


def _role(message: Message) -> str:
    # Anthropic puts results into the user's role; whoever reads a table wants to see them apart.
    return "tool" if message.results else message.role


def _by_tool(messages: Sequence[Message], meter: Meter) -> list[ToolShare]:
    names: dict[str, str] = {}
    found: dict[str, list[int]] = {}
    last_name = ""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                names[part.id] = last_name = part.name or "(no name)"
                row = found.setdefault(last_name, [0, 0, 0])
                row[0] += 1
                row[1] += meter.count_text(part.arguments_text)
            elif isinstance(part, ToolResult):
                name = last_name if part.by_position else names.get(part.call_id)
                row = found.setdefault(part.name or name or "(no call)", [0, 0, 0])
                row[2] += meter.count_text(part.text)
    rows = [
        ToolShare(name, calls, meter.scale(asked), meter.scale(answered))
        for name, (calls, asked, answered) in found.items()
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
