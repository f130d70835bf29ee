"""What OpenAI's chat completions refuse, from its documentation and its public error messages.

Written without looking at `compact.messages.legality`, so that one does not repeat the mistakes of the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from compact.tools.standins.pictures import find_blocks
from compact.tools.standins.problems import Item, Problem, Rules, has_surrogate, kind_of, on_page

_CREATE = "OpenAI docs: api-reference/chat/create"
TOOLS = "OpenAI docs: guides/function-calling"
IMAGES = "OpenAI docs: guides/images-vision#image-input-requirements"

MAX_ID = 64
MAX_IMAGES = 1_500
_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_SPEAKER = re.compile(r"[^\s<|\\/>]+")
_PARTS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
    "function": ("text",),
    "system": ("text",),
    "developer": ("text",),
}


def find_problems(body: Any, rules: Rules | None = None) -> list[Problem]:
    """Every reason why OpenAI refuses the body of `POST /v1/chat/completions`; empty if it accepts it."""
    return list(on_page(_CREATE, _find(body, rules or Rules())))


def _find(body: Any, rules: Rules) -> Iterator[Problem]:
    if not isinstance(body, dict) or has_surrogate(body):
        yield unparsable()
        return
    found: list[Problem] = []
    if not isinstance(body.get("model"), str):
        found.append(Problem("you must provide a model parameter"))
    messages = body.get("messages")
    if messages is None:
        found.append(_missing("messages"))
    elif not isinstance(messages, list):
        found.append(wrong_type("messages", "an array of objects", messages))
    elif not messages:
        found.append(empty_array("messages"))
    else:
        for index, message in enumerate(messages):
            found += _message_problems(f"messages[{index}]", index, message, rules)
    yield from found
    if not found:
        # The provider looks at the order only where every message has the right form.
        yield from on_page(TOOLS, _pair_problems(messages))  # type: ignore[arg-type]  # a list, or it is a problem
        yield from image_problems(messages, "image_url")


def image_problems(messages: Any, kind: str) -> Iterator[Problem]:
    """What is wrong with the number of pictures of a request."""
    found = sum(1 for _ in find_blocks(messages, kind, "messages"))
    if found > MAX_IMAGES:
        text = f"Too many images in the request: expected at most {MAX_IMAGES}, but got {found} instead."
        yield Problem(text, "messages", "too_many_images", page=IMAGES)


def unparsable() -> Problem:
    """The refusal of a body that is not JSON."""
    return Problem(
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
        "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
    )


def wrong_type(where: str, expected: str, value: Any) -> Problem:
    """The refusal of a value of the wrong kind."""
    message = f"Invalid type for '{where}': expected {expected}, but got {kind_of(value)} instead."
    return Problem(message, where, "invalid_type")


def wrong_value(where: str, value: Any, allowed: Sequence[str]) -> Problem:
    """The refusal of a value that is not one of the allowed ones."""
    listed = (
        ", ".join(f"'{name}'" for name in allowed[:-1]) + f", and '{allowed[-1]}'"
        if allowed[1:]
        else f"'{allowed[0]}'"
    )
    return Problem(f"Invalid value: '{value}'. Supported values are: {listed}.", where, "invalid_value")


def empty_array(where: str) -> Problem:
    """The refusal of a list without entries."""
    message = f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return Problem(message, where, "empty_array")


def id_problems(where: str, value: Any) -> Iterator[Problem]:
    """What is wrong with the id of a call."""
    if value is None:
        yield _missing(where)
    elif not isinstance(value, str):
        yield wrong_type(where, "a string", value)
    elif not value:
        message = f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an empty string instead."
        yield Problem(message, where, "empty_string")
    elif len(value) > MAX_ID:
        message = (
            f"Invalid '{where}': string too long. Expected a string with maximum length {MAX_ID}, but got a string with "
            f"length {len(value)} instead."
        )
        yield Problem(message, where, "string_above_max_length")


def name_problems(where: str, value: Any) -> Iterator[Problem]:
    """What is wrong with the name of a tool."""
    found = list(id_problems(where, value))
    yield from found
    if not found and not _TOOL_NAME.fullmatch(value):
        message = (
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'."
        )
        yield Problem(message, where, "invalid_value")


def argument_problems(where: str, value: Any, rules: Rules) -> Iterator[Problem]:
    """What is wrong with the arguments of a call."""
    if value is None:
        yield _missing(where)
    elif not isinstance(value, str):
        yield wrong_type(where, "a string", value)
    elif rules.json_arguments and not _is_json_object(value):
        yield Problem(
            f"Invalid '{where}': the arguments of a function call must be a JSON object.",
            where,
            "invalid_value",
        )


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _missing(where: str) -> Problem:
    return Problem(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")


# --- one message


def _message_problems(where: str, index: int, message: Any, rules: Rules) -> Iterator[Problem]:
    if not isinstance(message, dict):
        yield wrong_type(where, "an object", message)
        return
    role = message.get("role")
    if role is None:
        yield _missing(f"{where}.role")
        return
    if role not in _ROLES:
        yield wrong_value(f"{where}.role", role, _ROLES)
        return
    name = message.get("name")
    if role not in ("tool", "function") and name is not None and not _is_speaker(name):
        text = (
            f"Invalid '{where}.name': string does not match pattern. Expected a string that matches the pattern "
            r"'^[^\s<|\\/>]+$'."
        )
        yield Problem(text, f"{where}.name", "invalid_value")
    if role == "function" and not name:
        text = "Missing parameter 'name': messages with role 'function' must have a 'name'."
        yield Problem(text, f"messages.[{index}].name")
    if role == "tool" and not message.get("tool_call_id"):
        text = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
        yield Problem(text, f"messages.[{index}].tool_call_id")
    yield from _content_problems(where, index, message, role)
    if role == "assistant":
        yield from _call_problems(where, message, rules)


def _is_speaker(name: Any) -> bool:
    return isinstance(name, str) and bool(_SPEAKER.fullmatch(name))


def _content_problems(where: str, index: int, message: Item, role: str) -> Iterator[Problem]:
    content = message.get("content")
    if content is None:
        says_otherwise = any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
        if not (role == "assistant" and says_otherwise):
            text = "Invalid value for 'content': expected a string, got null."
            yield Problem(text, f"messages.[{index}].content")
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield wrong_type(f"{where}.content", "one of a string or array of objects", content)
        return
    if not content:
        yield empty_array(f"{where}.content")
    for place, part in enumerate(content):
        yield from _part_problems(f"{where}.content[{place}]", part, _PARTS[role])


def _part_problems(where: str, part: Any, allowed: Sequence[str]) -> Iterator[Problem]:
    if not isinstance(part, dict):
        yield wrong_type(where, "an object", part)
        return
    kind = part.get("type")
    if kind is None:
        yield _missing(f"{where}.type")
    elif kind not in allowed:
        yield wrong_value(f"{where}.type", kind, allowed)
    else:
        value = part.get(kind)
        expected = "a string" if kind in ("text", "refusal") else "an object"
        if value is None:
            yield _missing(f"{where}.{kind}")
        elif not isinstance(value, str if expected == "a string" else dict):
            yield wrong_type(f"{where}.{kind}", expected, value)


def _call_problems(where: str, message: Item, rules: Rules) -> Iterator[Problem]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        yield wrong_type(f"{where}.tool_calls", "an array of objects", calls)
        return
    if not calls:
        yield empty_array(f"{where}.tool_calls")
    for place, call in enumerate(calls):
        at = f"{where}.tool_calls[{place}]"
        if not isinstance(call, dict):
            yield wrong_type(at, "an object", call)
            continue
        yield from id_problems(f"{at}.id", call.get("id"))
        kind = call.get("type")
        if kind is None:
            yield _missing(f"{at}.type")
        elif kind not in ("function", "custom"):
            yield wrong_value(f"{at}.type", kind, ("function", "custom"))
        else:
            inner = call.get(kind)
            if not isinstance(inner, dict):
                yield (
                    _missing(f"{at}.{kind}")
                    if inner is None
                    else wrong_type(f"{at}.{kind}", "an object", inner)
                )
            else:
                yield from name_problems(f"{at}.{kind}.name", inner.get("name"))
                if kind == "function":
                    yield from argument_problems(f"{at}.function.arguments", inner.get("arguments"), rules)
                elif not isinstance(inner.get("input"), str):
                    yield _missing(f"{at}.custom.input")


# --- calls and their results


def _pair_problems(messages: Sequence[Item]) -> Iterator[Problem]:
    waiting: list[str] = []
    answered: dict[str, int] = {}
    asked_at = -1
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            yield from _answer_problems(index, message["tool_call_id"], waiting, answered, asked_at)
            continue
        yield from _open_problems(index, waiting, answered)
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        for place, call_id in enumerate(calls):
            if call_id in calls[:place]:
                where = f"messages[{index}].tool_calls[{place}].id"
                yield Problem(f"Invalid '{where}': duplicate value '{call_id}'.", where, "invalid_value")
        waiting, answered, asked_at = calls, {}, index if calls else -1
    yield from _open_problems(len(messages), waiting, answered)


def _answer_problems(
    index: int, call_id: str, waiting: list[str], answered: dict[str, int], asked_at: int
) -> Iterator[Problem]:
    if asked_at < 0:
        text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        yield Problem(text, f"messages.[{index}].role")
    elif call_id not in waiting:
        text = (
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message."
        )
        yield Problem(text, f"messages.[{index}].tool_call_id")
    elif call_id in answered:
        text = (
            f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', in messages[{answered[call_id]}] and "
            f"messages[{index}]."
        )
        yield Problem(text, f"messages.[{index}].tool_call_id")
    else:
        answered[call_id] = index


def _open_problems(index: int, waiting: list[str], answered: dict[str, int]) -> Iterator[Problem]:
    left = [call_id for call_id in waiting if call_id not in answered]
    if left:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
            f"The following tool_call_ids did not have response messages: {', '.join(left)}"
        )
        yield Problem(text, f"messages.[{index}].role")
