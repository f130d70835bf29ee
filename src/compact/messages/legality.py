"""Is this list legal? Finds what a provider would answer with a 400, before the list is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.messages import compaction_blocks, dialects
from compact.messages.cache_marks import MAX_MARKS, count_marks
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import is_plain, plain
from compact.messages.message import (
    CACHE_POINT,
    GAP,
    LONE_SURROGATE,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    bad_text,
    has_lone_surrogate,
    is_cache_point,
    unknown_number,
)
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
    unsigned_calls,
)
from compact.messages.thinking import Request, find_unbound

__all__ = [
    "MARKED",
    "ROLES",
    "ModelRules",
    "Violation",
    "bad_text_in",
    "ends_blank",
    "fill_role_gaps",
    "fits_call",
    "gap_before",
    "has_content",
    "id_problem",
    "is_misplaced",
    "is_refused_text",
    "item_id",
    "lacks_content",
    "lacks_name",
    "loose_end",
    "name_problem",
    "role_gaps",
    "structure_violations",
    "violations",
    "violations_in",
]

_NAME = (re.compile(r"[A-Za-z0-9_-]{1,64}"), "1 to 64 of A-Z a-z 0-9 _ -")
_NAME_RULES = {
    "chat": _NAME,
    "responses": _NAME,
    "anthropic": (re.compile(r"[A-Za-z0-9_-]{1,128}"), "1 to 128 of A-Z a-z 0-9 _ -"),
    "ai_sdk": _NAME,
    "gemini": (re.compile(r"[A-Za-z0-9_.:-]{1,128}"), "1 to 128 of A-Z a-z 0-9 _ . : -"),
    "converse": _NAME,
}
"""The names of tools that a provider accepts."""

_ALL_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
ROLES = {
    "chat": _ALL_ROLES,
    "responses": _ALL_ROLES,
    "anthropic": frozenset({"system", "user", "assistant"}),
    "ai_sdk": _ALL_ROLES,
    "gemini": frozenset({"user", "assistant"}),
    "converse": frozenset({"system", "user", "assistant"}),
}
"""The roles of the neutral form that a dialect has. Gemini's `model` is the assistant."""
# Anthropic has a pattern. The others take any visible characters. Their lengths differ (OpenAI's own chat endpoint stops
# at 40), but providers do not issue ids longer than they accept, so only the common limit is enforced.
_VISIBLE_ID = (re.compile(r"[!-~]{1,64}"), "1 to 64 visible ASCII characters")
_ID_RULES = {
    "chat": _VISIBLE_ID,
    "responses": _VISIBLE_ID,
    "anthropic": _NAME,
    "ai_sdk": _VISIBLE_ID,
    "gemini": _VISIBLE_ID,
    "converse": (re.compile(r"[A-Za-z0-9_.:-]{1,64}"), "1 to 64 of A-Z a-z 0-9 _ . : -"),
}
_NO_BLANK_TEXT = frozenset({"anthropic", "converse"})
"""Dialects whose provider refuses a text block that is only whitespace. Gemini refuses an empty one."""
_ENDS_SPEAKING = frozenset({"anthropic", "converse"})
"""Dialects whose reply may not end with thinking, or with blanks where the model should go on."""
MARKED = frozenset({"anthropic", "converse"})
"""Dialects in which a host marks how far to cache a request."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason why a provider would refuse the list."""

    index: int
    """The index of the message in the list."""
    rule: str
    """A stable name, for programs and tests."""
    message: str
    """One sentence for people."""


@dataclass(frozen=True, slots=True)
class ModelRules:
    """What differs between models of one provider."""

    checks_prefixes: bool = False
    """Whether a signed thinking block is refused when anything before it has changed since it was made."""


def violations(
    messages: Sequence[Any] | Mapping[str, Any],
    dialect: str | None = None,
    in_flight: bool = True,
    rules: ModelRules | None = None,
    previous: Sequence[Any] | Mapping[str, Any] | None = None,
) -> list[Violation]:
    """Return every reason why a provider would refuse this list, in the order of the messages; empty means legal.

    Args:
        messages: The host's list, in any dialect, or a request body with `messages` or `input`, `system` and `tools`.
        dialect: Its dialect; detected if not given.
        in_flight: Whether the newest batch of calls may still wait for results. True suits a history between two
            steps, False a request that is about to be sent.
        rules: What the model that is asked refuses.
        previous: What was sent before, as a list or a request body. Only models that check prefixes are compared with it.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    request = Request.of(messages)
    known, neutral = dialects.read(request.messages, dialect)
    found = violations_in(neutral, known, in_flight)
    if known.NAME in MARKED and (marks := _count_marks(messages, request)) > MAX_MARKS:
        why = f"the request carries {marks} cache marks, more than {MAX_MARKS}"
        found.append(Violation(len(request.messages) - 1, "cache_marks", why))
    if rules is not None and rules.checks_prefixes and previous is not None and known.NAME != "harness":
        found += [
            Violation(unbound.index, "thinking_unbound", f"a thinking block would be refused: {unbound.why}")
            for unbound in find_unbound(request, Request.of(previous), known)
        ]
        found.sort(key=lambda violation: violation.index)
    return found


def _count_marks(given: Sequence[Any] | Mapping[str, Any], request: Request) -> int:
    """The marks in a request and the mark of the whole, which its body carries."""
    whole = isinstance(given, Mapping) and given.get("cache_control") is not None
    return count_marks(*request.messages, request.system, request.tools) + whole


def violations_in(messages: Sequence[Message], dialect: Dialect, in_flight: bool = True) -> list[Violation]:
    """`violations` on neutral messages."""
    if dialect.NAME == "harness":
        return []
    found = [
        each for index, message in enumerate(messages) for each in _message_rules(index, message, dialect)
    ]
    found += structure_violations(messages, dialect, in_flight)
    if not in_flight and ends_blank(messages, dialect):
        why = "the list ends with blanks behind a reply that the model should continue"
        found.append(Violation(len(messages) - 1, "trailing_blanks", why))
    return sorted(found, key=lambda violation: violation.index)


def message_violations(message: Message, dialect: Dialect) -> list[Violation]:
    """The part of `violations` that is about one message: its role, its texts, its ids."""
    return [] if dialect.NAME == "harness" else list(_message_rules(0, message, dialect))


def structure_violations(
    messages: Sequence[Message], dialect: Dialect, in_flight: bool = True
) -> list[Violation]:
    """The part of `violations` that is about the order of messages: pairs, roles, reasoning."""
    return [*_pair_rules(messages, dialect, in_flight), *_order_rules(messages, dialect)]


def ends_blank(messages: Sequence[Message], dialect: Dialect) -> bool:
    """Whether the list ends with blanks in a reply that the model should continue, which Claude refuses."""
    if dialect.NAME not in _ENDS_SPEAKING or not messages or messages[-1].role != "assistant":
        return False
    last = messages[-1].parts[-1] if messages[-1].parts else None
    return isinstance(last, Text) and last.text != last.text.rstrip()


def role_gaps(messages: Sequence[Message], dialect: Dialect) -> list[int]:
    """The indexes of messages that need one of the other role before them.

    Only some dialects require roles to alternate and the user to begin; for the others the list is empty.
    """
    found: list[int] = []
    before = "assistant" if dialect.RESULTS_IN_USER else ""
    for index, message in enumerate(messages if before else ()):
        if message.role != "system":
            if message.role == before and not compaction_blocks.may_repeat_role(message):
                found.append(index)
            before = "" if compaction_blocks.is_block_alone(message) else message.role
    return found


def gap_before(message: Message) -> Message:
    """The marker that fills a gap before this message."""
    return Message("user" if message.role == "assistant" else "assistant", (Text(GAP),), injected=True)


def fill_role_gaps(messages: list[Message], dialect: Dialect) -> list[Message]:
    """Put a marker into every gap of `role_gaps`."""
    found = list(messages)
    for index in reversed(role_gaps(messages, dialect)):
        found.insert(index, gap_before(messages[index]))
    return found


def bad_text_in(message: Message, dialect: Dialect) -> str | None:
    """What is wrong with the characters of a message, or None. A NUL inside of JSON is escaped, and stays."""
    for piece in dialect.pieces(message.origin):
        if isinstance(piece, str) and (problem := bad_text(piece)):
            return problem
    found = not is_plain(message.origin) and has_lone_surrogate(plain(message.origin))
    return LONE_SURROGATE if found else None


def id_problem(call_id: str, dialect: Dialect) -> str | None:
    """Why a call id would be refused, or None."""
    pattern, allowed = _ID_RULES[dialect.NAME]
    return None if pattern.fullmatch(call_id) else f"the call id {call_id[:80]!r} is not {allowed}"


def name_problem(name: str, dialect: Dialect) -> str | None:
    """Why the name of a tool would be refused, or None."""
    pattern, allowed = _NAME_RULES[dialect.NAME]
    return None if pattern.fullmatch(name) else f"the tool name {name[:80]!r} is not {allowed}"


def is_misplaced(part: Part, role: str, dialect: Dialect) -> bool:
    """Whether a part cannot stand in a message of this role: only an assistant calls and thinks, only others answer."""
    if isinstance(part, ToolCall) or (isinstance(part, Reasoning) and dialect.RESULTS_IN_USER):
        return role != "assistant"
    if role == "system" and dialect.NAME == "converse" and isinstance(part, Image | Opaque):
        return part.kind == "image" or part.type not in ("guardContent", CACHE_POINT)
    return isinstance(part, ToolResult) and role == "assistant"


def lacks_content(message: Message, dialect: Dialect) -> bool:
    """Whether a message says nothing that its provider accepts. An empty text is accepted in an OpenAI system prompt."""
    if message.role in ("user", "assistant") or dialect.RESULTS_IN_USER:
        return not has_content(message, dialect)
    return not message.parts


def lacks_name(result: ToolResult, dialect: Dialect) -> bool:
    """Whether a result has a blank name, or none where a result of the AI-SDK has the name of its tool."""
    if result.name is None:
        return dialect.NAME == "ai_sdk" and isinstance(result.origin, Mapping)
    return not result.name.strip()


def item_id(message: Message, dialect: Dialect) -> str | None:
    """The id of a Responses item itself, which a list may contain only once. References to items may repeat it."""
    if dialect.NAME != "responses" or message.origin is None or is_plain(message.origin):
        return None
    data = plain(message.origin)
    own = data.get("id")
    # Placeholders such as the Agents SDK's "__fake_id__" stand on many items and are taken out by those who set them.
    is_real = (
        isinstance(own, str) and own and not own.startswith("_") and data.get("type") != "item_reference"
    )
    return own if is_real else None


def is_refused_text(text: str, dialect: Dialect) -> bool:
    """Whether a provider refuses a text block with this text: blanks, or with Gemini nothing at all."""
    if dialect.NAME in _NO_BLANK_TEXT:
        return not text.strip()
    return dialect.NAME == "gemini" and not text


def loose_end(message: Message, dialect: Dialect) -> int:
    """How many parts at the end of a reply lead to nothing: thinking, and cache points behind it."""
    if dialect.NAME not in _ENDS_SPEAKING or message.role != "assistant":
        return 0
    said = [
        n
        for n, part in enumerate(message.parts, 1)
        if not (isinstance(part, Reasoning) or is_cache_point(part))
    ]
    tail = message.parts[said[-1] if said else 0 :]
    return len(tail) if any(isinstance(part, Reasoning) for part in tail) else 0


def has_content(message: Message, dialect: Dialect) -> bool:
    """Whether a message has anything that a provider accepts as content."""
    return any(_is_content(part, dialect) for part in message.parts)


def _is_content(part: Part, dialect: Dialect) -> bool:
    if isinstance(part, Text):
        return not is_refused_text(part.text, dialect) and bool(part.text)
    if is_cache_point(part):
        return False
    if isinstance(part, Reasoning):
        # A separate item in Responses. In other dialects thinking alone is not a message.
        return dialect.ITEMS_ARE_PARTS
    return True


def _message_rules(index: int, message: Message, dialect: Dialect) -> Iterator[Violation]:
    if message.role not in ROLES[dialect.NAME]:
        allowed = ", ".join(sorted(ROLES[dialect.NAME]))
        yield Violation(index, "unknown_role", f"the role {message.role!r} is not one of {allowed}")
    if lacks_content(message, dialect):
        yield Violation(index, "empty_content", f"the {message.role} message has no content")
    if message.origin is not None and not (dialect.TAKES_PLAIN and is_plain(message.origin)):
        yield from _form_rules(index, plain(message.origin), dialect)
    for part in message.parts:
        if is_misplaced(part, message.role, dialect):
            why = f"a {part.kind.replace('_', ' ')} stands in a message of the role {message.role!r}"
            yield Violation(index, "misplaced_part", why)
    if problem := bad_text_in(message, dialect):
        yield Violation(index, "invalid_text", f"the message contains {problem}")
    if dialect.RESULTS_IN_USER:
        texts = [part for part in message.parts if isinstance(part, Text)]
        texts += [part for result in message.results for part in result.content if isinstance(part, Text)]
        if any(is_refused_text(part.text, dialect) and isinstance(part.origin, Mapping) for part in texts):
            yield Violation(index, "empty_block", "a text block is empty or only whitespace")
        if loose_end(message, dialect):
            yield Violation(
                index, "reasoning_separated", "the last block of an assistant message is thinking"
            )
    for call in message.calls:
        yield from _call_rules(index, call, dialect)
    for result in message.results:
        if lacks_name(result, dialect):
            yield Violation(index, "bad_name", "the tool result has no name, or a blank one")


def _form_rules(index: int, data: Mapping[str, Any], dialect: Dialect) -> Iterator[Violation]:
    for flaw in dialect.mend(data)[1]:
        yield Violation(index, flaw.rule, flaw.why)
    if number := unknown_number(data):
        yield Violation(index, "invalid_number", f"the message contains {number}, which JSON does not know")


def _call_rules(index: int, call: ToolCall, dialect: Dialect) -> Iterator[Violation]:
    if not call.by_position:
        if not call.id:
            yield Violation(index, "call_without_id", f"the call of {call.name!r} has no id")
        elif problem := id_problem(call.id, dialect):
            yield Violation(index, "bad_id", problem)
    if not call.name:
        yield Violation(index, "call_without_name", f"the call {call.id[:80]!r} has no name")
    elif problem := name_problem(call.name, dialect):
        yield Violation(index, "bad_name", problem)
    if not call.free_form and call.parsed_arguments() is None:
        yield Violation(index, "bad_arguments", f"the arguments of {call.name!r} are not a JSON object")


def _pair_rules(
    messages: Sequence[Message], dialect: Dialect, in_flight_is_fine: bool
) -> Iterator[Violation]:
    used: set[str] = set()
    answered: set[str] = set()
    covered = 0
    reference = first_reference(messages)
    asked = {"", *(call.id for message in messages for call in message.calls)}
    for batch in batches(messages, dialect):
        yield from _orphans(messages, covered, batch.start, answered, reference, asked)
        covered = batch.stop
        for place in batch.calls:
            call = call_at(messages, place)
            if call.id in used and not call.by_position:
                yield Violation(
                    place.message, "duplicate_call_id", f"the call id {call.id!r} was used before"
                )
            used.add(call.id)
        answered |= {result_at(messages, place).call_id for place in batch.answers if place is not None}
        waiting = (in_flight_is_fine and in_flight(messages, batch)) or has_reference(messages, batch)
        yield from _answer_rules(messages, batch, dialect, waiting)
        for place in batch.strangers:
            yield from _orphan(place.message, result_at(messages, place), answered, reference, asked)
    yield from _orphans(messages, covered, len(messages), answered, reference, asked)


def _answer_rules(
    messages: Sequence[Message], batch: Batch, dialect: Dialect, waiting: bool
) -> Iterator[Violation]:
    for place, answer in zip(batch.calls, batch.answers, strict=True):
        if answer is None and not waiting:
            call = call_at(messages, place)
            why = f"the call {call.id!r} of {call.name!r} has no result"
            yield Violation(place.message, "missing_result", why)
        elif answer is not None and not fits_call(
            call_at(messages, place), result_at(messages, answer), dialect
        ):
            why = f"the result of {result_at(messages, answer).name!r} has another id or name than its call"
            yield Violation(answer.message, "unlike_call", why)
    for place in batch.repeats:
        call_id = result_at(messages, place).call_id
        yield Violation(place.message, "duplicate_result", f"the call {call_id!r} is answered twice")
    answers = [answer for answer in batch.answers if answer is not None]
    behind = _results_directly_behind(messages, batch, dialect)[: len(answers)]
    if behind == answers:
        return
    if set(behind) == set(answers):
        rule, why = "result_order", "the results are not in the order of their calls"
    elif dialect.RESULTS_IN_USER and all(place.message == batch.end for place in answers):
        rule, why = "result_not_first", "the tool results are not the first blocks of their message"
    else:
        rule, why = "result_not_adjacent", "the results do not directly follow their calls"
    yield Violation(batch.end - 1, rule, why)


def fits_call(call: ToolCall, result: ToolResult, dialect: Dialect) -> bool:
    """Whether a result carries the id and the name of the call that it answers. Only Gemini's results repeat both."""
    return dialect.NAME != "gemini" or (call.id, call.name) == (result.call_id, result.name)


def _results_directly_behind(messages: Sequence[Message], batch: Batch, dialect: Dialect) -> list[Found]:
    last = min(batch.end + 1, batch.stop) if dialect.RESULTS_IN_USER else batch.stop
    found: list[Found] = []
    for index in range(batch.end, last):
        for place, part in enumerate(messages[index].parts):
            if is_cache_point(part):
                continue
            if not isinstance(part, ToolResult):
                return found
            found.append(Found(index, place))
    return found


def _orphans(
    messages: Sequence[Message], start: int, stop: int, answered: set[str], reference: int, asked: set[str]
) -> Iterator[Violation]:
    for place, result in results_in(messages, start, stop):
        yield from _orphan(place.message, result, answered, reference, asked)


def _orphan(
    index: int, result: ToolResult, answered: set[str], reference: int, asked: set[str]
) -> Iterator[Violation]:
    if result.call_id in answered:
        yield Violation(index, "duplicate_result", f"the call {result.call_id!r} was answered before")
    elif index < reference or result.call_id in asked:
        yield Violation(index, "orphan_result", f"the result for {result.call_id!r} does not follow its call")
    else:
        answered.add(result.call_id)  # of a call that only the provider has


def _order_rules(messages: Sequence[Message], dialect: Dialect) -> Iterator[Violation]:
    if dialect.NAME == "responses":
        seen: set[str] = set()
        for index, message in enumerate(messages):
            own = item_id(message, dialect)
            if own in seen:
                yield Violation(index, "duplicate_item_id", f"the item id {own!r} was used before")
            seen |= {own} if own else set()
        for index, message in enumerate(messages):
            followed = index + 1 < len(messages) and messages[index + 1].role == "assistant"
            if not followed and any(isinstance(part, Reasoning) for part in message.parts):
                why = "the reasoning item is not followed by the item it led to"
                yield Violation(index, "reasoning_separated", why)
    elif dialect.RESULTS_IN_USER:
        spoken = [index for index, message in enumerate(messages) if message.role != "system"]
        for index, message in enumerate(messages):
            if message.role == "system" and spoken and index > spoken[0]:
                yield Violation(index, "system_not_first", "the system prompt stands inside the conversation")
        yield from (Violation(*found) for found in compaction_blocks.misplaced_blocks(messages))
        if spoken and not compaction_blocks.may_open(messages[spoken[0]]):
            yield Violation(spoken[0], "first_not_user", "the first message is not the user's")
        for index in role_gaps(messages, dialect):
            if index != spoken[0]:
                why = f"two {messages[index].role} messages in a row"
                yield Violation(index, "roles_alternate", why)
        for place in unsigned_calls(messages, dialect):
            name = call_at(messages, place).name
            why = f"the call of {name!r} lost its thought signature, which others of its turn have"
            yield Violation(place.message, "missing_signature", why)
