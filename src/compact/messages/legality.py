"""Is this list legal? What the provider would answer with a 400, found before it is sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compact.messages import dialects
from compact.messages.dialects import Dialect
from compact.messages.message import Message, Part, Reasoning, Text, ToolCall, ToolResult
from compact.messages.pairs import (
    Batch,
    Found,
    batches,
    call_at,
    first_reference,
    has_reference,
    in_flight,
    result_at,
    results_in,
)

__all__ = [
    "NAME_RULE",
    "ROLES",
    "Violation",
    "bad_text",
    "has_content",
    "id_problem",
    "structure_violations",
    "violations",
    "violations_in",
]

NAME_RULE = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider accepts as a tool's name."""

ROLES = {
    "chat": frozenset({"system", "developer", "user", "assistant", "tool"}),
    "responses": frozenset({"system", "developer", "user", "assistant", "tool"}),
    "anthropic": frozenset({"system", "user", "assistant"}),
    "ai_sdk": frozenset({"system", "developer", "user", "assistant", "tool"}),
}
_ID_RULES = {
    # Anthropic has a pattern. The others take any visible characters; lengths differ (OpenAI's own chat endpoint
    # stops at 40), but an id longer than its maker accepts does not occur, so only the common limit is enforced.
    "chat": (re.compile(r"[!-~]{1,64}"), "1 to 64 visible ASCII characters"),
    "responses": (re.compile(r"[!-~]{1,64}"), "1 to 64 visible ASCII characters"),
    "anthropic": (re.compile(r"[A-Za-z0-9_-]{1,64}"), "1 to 64 of A-Z a-z 0-9 _ -"),
    "ai_sdk": (re.compile(r"[!-~]{1,64}"), "1 to 64 visible ASCII characters"),
}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason why a provider would refuse the list."""

    index: int
    """The message's place in the list."""
    rule: str
    """A stable name, for programs and tests."""
    message: str
    """One sentence for people."""


def violations(
    messages: Sequence[Any], dialect: str | None = None, in_flight: bool = True
) -> list[Violation]:
    """Every reason why a provider would refuse this list, in order of place; empty means legal.

    Args:
        messages: The host's list, in any dialect.
        dialect: Its dialect, when it should not be recognised.
        in_flight: Whether a newest batch that still waits for results is fine (a history between two steps) or not
            (a request that is about to be sent).

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    known, neutral = dialects.read(messages, dialect)
    return violations_in(neutral, known, in_flight)


def violations_in(messages: Sequence[Message], dialect: Dialect, in_flight: bool = True) -> list[Violation]:
    """`violations` of messages that were read already."""
    found: list[Violation] = []
    if dialect.NAME == "harness":
        return found
    for index, message in enumerate(messages):
        found += _message_rules(index, message, dialect)
    found += structure_violations(messages, dialect, in_flight)
    return sorted(found, key=lambda violation: violation.index)


def structure_violations(
    messages: Sequence[Message], dialect: Dialect, in_flight: bool = True
) -> list[Violation]:
    """The part of `violations` that is about the order of messages: pairs, roles, reasoning."""
    return [*_pair_rules(messages, dialect, in_flight), *_order_rules(messages, dialect)]


def bad_text(text: str) -> str | None:
    """What is wrong with the characters of a string, or None."""
    if "\x00" in text:
        return "a NUL character"
    if not text.isascii() and _SURROGATE.search(text):
        return "a lone surrogate (not valid UTF-8)"
    return None


def id_problem(call_id: str, dialect: Dialect) -> str | None:
    """Why a call id would be refused, or None."""
    pattern, allowed = _ID_RULES[dialect.NAME]
    return None if pattern.fullmatch(call_id) else f"the call id {call_id[:80]!r} is not {allowed}"


def has_content(message: Message, dialect: Dialect) -> bool:
    """Whether there is anything in a message that a provider accepts as content."""
    return any(_is_content(part, dialect) for part in message.parts)


def _is_content(part: Part, dialect: Dialect) -> bool:
    if isinstance(part, Text):
        return bool(part.text.strip()) if dialect.NAME == "anthropic" else bool(part.text)
    if isinstance(part, Reasoning):
        # A Responses item of its own; elsewhere thinking alone is no message.
        return dialect.ITEMS_ARE_PARTS
    return True


def _message_rules(index: int, message: Message, dialect: Dialect) -> list[Violation]:
    found = []
    if message.role not in ROLES[dialect.NAME]:
        allowed = ", ".join(sorted(ROLES[dialect.NAME]))
        found.append(Violation(index, "unknown_role", f"the role {message.role!r} is not one of {allowed}"))
    if message.role in ("user", "assistant") and not has_content(message, dialect):
        found.append(Violation(index, "empty_content", f"the {message.role} message has no content"))
    for piece in dialect.pieces(message.origin):
        problem = bad_text(piece) if isinstance(piece, str) else None
        if problem:
            found.append(Violation(index, "invalid_text", f"the message contains {problem}"))
            break
    inner = [part for result in message.results for part in result.content]
    if any(isinstance(part, Text) and isinstance(part.origin, str) for part in (*message.parts, *inner)):
        found.append(Violation(index, "bare_string", "a bare string stands where a content block should"))
    if dialect.NAME == "anthropic":
        found += _block_rules(index, message)
    for call in message.calls:
        found += _call_rules(index, call, dialect)
    for result in message.results:
        if result.name is not None and not result.name.strip():
            found.append(Violation(index, "bad_name", "the tool result has a blank name"))
    return found


def _block_rules(index: int, message: Message) -> list[Violation]:
    found = []
    inner = [part for result in message.results for part in result.content]
    if any(isinstance(part, Text) and not part.text.strip() for part in (*message.parts, *inner)):
        found.append(Violation(index, "empty_block", "a text block is empty or only whitespace"))
    if message.role == "assistant" and message.parts and isinstance(message.parts[-1], Reasoning):
        found.append(
            Violation(index, "reasoning_separated", "the last block of an assistant message is thinking")
        )
    return found


def _call_rules(index: int, call: ToolCall, dialect: Dialect) -> list[Violation]:
    found = []
    if not call.by_position:
        if not call.id:
            found.append(Violation(index, "call_without_id", f"the call of {call.name!r} has no id"))
        elif problem := id_problem(call.id, dialect):
            found.append(Violation(index, "bad_id", problem))
    if not call.name:
        found.append(Violation(index, "call_without_name", f"the call {call.id[:80]!r} has no name"))
    elif not NAME_RULE.fullmatch(call.name):
        found.append(
            Violation(
                index, "bad_name", f"the tool name {call.name[:80]!r} is not 1 to 64 of A-Z a-z 0-9 _ -"
            )
        )
    if not call.free_form and call.parsed_arguments() is None:
        found.append(
            Violation(index, "bad_arguments", f"the arguments of {call.name!r} are not a JSON object")
        )
    return found


def _pair_rules(messages: Sequence[Message], dialect: Dialect, in_flight_is_fine: bool) -> list[Violation]:
    found: list[Violation] = []
    used: set[str] = set()
    answered: set[str] = set()
    covered = 0
    reference = first_reference(messages)
    for batch in batches(messages, dialect):
        found += _orphans(messages, covered, min(batch.start, reference), answered)
        covered = batch.stop
        for place in batch.calls:
            call = call_at(messages, place)
            if call.id in used and not call.by_position:
                found.append(
                    Violation(place.message, "duplicate_call_id", f"the call id {call.id!r} was used before")
                )
            used.add(call.id)
        answered |= {result_at(messages, place).call_id for place in batch.answers if place is not None}
        waiting = (in_flight_is_fine and in_flight(messages, batch)) or has_reference(messages, batch)
        found += _answer_rules(messages, batch, dialect, waiting, reference)
    found += _orphans(messages, covered, reference, answered)
    return found


def _answer_rules(
    messages: Sequence[Message], batch: Batch, dialect: Dialect, waiting: bool, reference: int
) -> list[Violation]:
    found = []
    for place, answer in zip(batch.calls, batch.answers, strict=True):
        if answer is None and not waiting:
            call = call_at(messages, place)
            found.append(
                Violation(
                    place.message, "missing_result", f"the call {call.id!r} of {call.name!r} has no result"
                )
            )
    for place in batch.repeats:
        call_id = result_at(messages, place).call_id
        found.append(Violation(place.message, "duplicate_result", f"the call {call_id!r} is answered twice"))
    for place in batch.strangers:
        if place.message < reference:
            found.append(_orphan(place.message, result_at(messages, place)))
    found += _place_rules(messages, batch, dialect)
    return found


def _place_rules(messages: Sequence[Message], batch: Batch, dialect: Dialect) -> list[Violation]:
    answers = [answer for answer in batch.answers if answer is not None]
    behind = _results_directly_behind(messages, batch, dialect)[: len(answers)]
    if behind == answers:
        return []
    if set(behind) == set(answers):
        rule, why = "result_order", "the results are not in the order of their calls"
    elif dialect.RESULTS_IN_USER and all(place.message == batch.end for place in answers):
        rule, why = "result_not_first", "the tool results are not the first blocks of their message"
    else:
        rule, why = "result_not_adjacent", "the results do not directly follow their calls"
    return [Violation(batch.end - 1, rule, why)]


def _results_directly_behind(messages: Sequence[Message], batch: Batch, dialect: Dialect) -> list[Found]:
    last = min(batch.end + 1, batch.stop) if dialect.RESULTS_IN_USER else batch.stop
    found: list[Found] = []
    for index in range(batch.end, last):
        for place, part in enumerate(messages[index].parts):
            if not isinstance(part, ToolResult):
                return found
            found.append(Found(index, place))
    return found


def _orphans(messages: Sequence[Message], start: int, stop: int, answered: set[str]) -> list[Violation]:
    found = []
    for place, result in results_in(messages, start, stop):
        if result.call_id in answered:
            found.append(
                Violation(
                    place.message, "duplicate_result", f"the call {result.call_id!r} was answered before"
                )
            )
        else:
            found.append(_orphan(place.message, result))
    return found


def _orphan(index: int, result: ToolResult) -> Violation:
    return Violation(index, "orphan_result", f"the result for {result.call_id!r} does not follow its call")


def _order_rules(messages: Sequence[Message], dialect: Dialect) -> list[Violation]:
    if dialect.NAME == "responses":
        return _reasoning_rules(messages)
    if dialect.NAME == "anthropic":
        return _alternation_rules(messages)
    return []


def _reasoning_rules(messages: Sequence[Message]) -> list[Violation]:
    found = []
    for index, message in enumerate(messages):
        followed = index + 1 < len(messages) and messages[index + 1].role == "assistant"
        if not followed and any(isinstance(part, Reasoning) for part in message.parts):
            found.append(
                Violation(
                    index, "reasoning_separated", "the reasoning item is not followed by the item it led to"
                )
            )
    return found


def _alternation_rules(messages: Sequence[Message]) -> list[Violation]:
    found = []
    before: str | None = None
    for index, message in enumerate(messages):
        if message.role == "system":
            if before is not None:
                found.append(
                    Violation(index, "system_not_first", "the system prompt stands inside the conversation")
                )
            continue
        if before is None and message.role != "user":
            found.append(Violation(index, "first_not_user", "the first message is not the user's"))
        if message.role == before:
            found.append(Violation(index, "roles_alternate", f"two {message.role} messages in a row"))
        before = message.role
    return found
