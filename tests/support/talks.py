"""A conversation of people, replies and tool calls, and its messages as each provider takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from compact.messages import Message, dialects
from compact.tools.transcripts import RecordedSession


@dataclass(frozen=True)
class Use:
    """A tool call and its result."""

    name: str
    arguments: dict[str, Any]
    output: str


@dataclass(frozen=True)
class Step:
    """One reply of the model: its words, and its calls."""

    text: str
    uses: Sequence[Use] = ()


@dataclass(frozen=True)
class Turn:
    """What a person said, and the replies to it."""

    text: str
    steps: Sequence[Step]


Talk: TypeAlias = Sequence[Turn]
Numbered: TypeAlias = tuple[str, Use]


@dataclass(frozen=True)
class Said:
    """Everything that a conversation contains, each kind in its order."""

    users: list[str]
    replies: list[str]
    calls: list[tuple[str, Any]]
    results: list[str]


def said_in(talk: Talk) -> Said:
    """What the conversation says."""
    steps = [step for turn in talk for step in turn.steps]
    uses = [use for step in steps for use in step.uses]
    return Said(
        users=[turn.text for turn in talk],
        replies=[step.text for step in steps if step.text],
        calls=[(use.name, use.arguments) for use in uses],
        results=[use.output for use in uses],
    )


def read_from(session: RecordedSession) -> Said:
    """What a session says that was read from a file."""
    _, messages = dialects.read(session.messages, session.dialect)
    people = [message for message in messages if not message.injected]
    return Said(
        users=[m.text for m in people if m.role == "user" and m.text and not m.results],
        replies=[m.text for m in messages if m.role == "assistant" and m.text],
        calls=[(c.name, _arguments(c.arguments)) for m in messages for c in m.calls],
        results=[_result_text(m, n) for m in messages for n in range(len(m.results))],
    )


def _result_text(message: Message, place: int) -> str:
    return message.results[place].text


def _arguments(given: Any) -> Any:
    return json.loads(given) if isinstance(given, str) else given


def steps_of(talk: Talk) -> Iterator[tuple[Turn | None, Step, list[Numbered]]]:
    """The replies, each with the turn that it opens, and with its calls numbered through the conversation."""
    numbers = count(1)
    for turn in talk:
        for place, step in enumerate(turn.steps):
            yield turn if place == 0 else None, step, [(f"call_{next(numbers)}", use) for use in step.uses]


# --- messages of a provider


def chat(talk: Talk) -> list[Any]:
    found: list[Any] = []
    for opens, step, uses in steps_of(talk):
        if opens:
            found.append({"role": "user", "content": opens.text})
        calls = [
            {"id": i, "type": "function", "function": {"name": u.name, "arguments": json.dumps(u.arguments)}}
            for i, u in uses
        ]
        found.append({"role": "assistant", "content": step.text, **({"tool_calls": calls} if calls else {})})
        found += [{"role": "tool", "tool_call_id": i, "content": u.output} for i, u in uses]
    return found


def anthropic(talk: Talk) -> list[Any]:
    found: list[Any] = []
    for opens, step, uses in steps_of(talk):
        if opens:
            found.append({"role": "user", "content": [{"type": "text", "text": opens.text}]})
        blocks: list[Any] = [{"type": "text", "text": step.text}] if step.text else []
        blocks += [{"type": "tool_use", "id": i, "name": u.name, "input": u.arguments} for i, u in uses]
        found.append({"role": "assistant", "content": blocks})
        if uses:
            results = [{"type": "tool_result", "tool_use_id": i, "content": u.output} for i, u in uses]
            found.append({"role": "user", "content": results})
    return found


def responses(talk: Talk) -> list[Any]:
    found: list[Any] = []
    for opens, step, uses in steps_of(talk):
        if opens:
            found.append(
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": opens.text}]}
            )
        if step.text:
            said = [{"type": "output_text", "text": step.text}]
            found.append({"type": "message", "role": "assistant", "content": said})
        found += [
            {"type": "function_call", "call_id": i, "name": u.name, "arguments": json.dumps(u.arguments)}
            for i, u in uses
        ]
        found += [{"type": "function_call_output", "call_id": i, "output": u.output} for i, u in uses]
    return found


def contents(talk: Talk, ids: bool = True) -> list[Any]:
    found: list[Any] = []
    for opens, step, uses in steps_of(talk):
        if opens:
            found.append({"role": "user", "parts": [{"text": opens.text}]})
        parts: list[Any] = [{"text": step.text}] if step.text else []
        parts += [
            {"functionCall": {"name": u.name, "args": u.arguments, **({"id": i} if ids else {})}}
            for i, u in uses
        ]
        found.append({"role": "model", "parts": parts})
        if uses:
            answers = [
                {
                    "functionResponse": {
                        "name": u.name,
                        "response": {"output": u.output},
                        **({"id": i} if ids else {}),
                    }
                }
                for i, u in uses
            ]
            found.append({"role": "user", "parts": answers})
    return found
