"""What OpenAI's Responses API refuses, from its documentation and its public error messages.

Written without looking at `compact.messages.legality`, so that one does not repeat the mistakes of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from compact.tools.standins.chat_rules import (
    MAX_ID,
    TOOLS,
    argument_problems,
    id_problems,
    image_problems,
    name_problems,
    unparsable,
    wrong_type,
    wrong_value,
)
from compact.tools.standins.problems import Item, Problem, Rules, has_surrogate, on_page
from compact.tools.standins.signing import is_sealed

_CREATE = "OpenAI docs: api-reference/responses/create"
_COMPACTION = "OpenAI docs: guides/compaction"
_REASONING = "OpenAI docs: guides/reasoning#keeping-reasoning-items-in-context"

_ROLES = ("assistant", "system", "developer", "user")
_INPUT_PARTS = ("input_text", "input_image", "input_file", "input_audio")
_OUTPUT_PARTS = ("output_text", "refusal")
_CALLS = {
    "function_call": "function call",
    "custom_tool_call": "custom tool call",
    "computer_call": "computer call",
    "local_shell_call": "local shell call",
    "shell_call": "shell call",
    "apply_patch_call": "apply patch call",
}
"""Calls that the caller answers, and what error messages call them."""
_OUTPUTS = {f"{kind}_output": kind for kind in _CALLS}
_OTHERS = frozenset(
    {
        "reasoning",
        "item_reference",
        "compaction",
        "compaction_trigger",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "tool_search_call",
        "tool_search_output",
        "additional_tools",
        "configuration_update",
        "program",
        "program_output",
    }
)
_ID_PREFIXES = {"function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc", "compaction": "cmp"}
_ID = re.compile(r"[A-Za-z0-9_-]+")
_OWN_ID = re.compile(r"(?:fc|msg|ctc)_(\d+)r(?:_\d+)?")
"""An item that a stand-in wrote after reasoning: its number is that of the reasoning item."""


def find_problems(body: Any, rules: Rules | None = None) -> list[Problem]:
    """Every reason why OpenAI refuses the body of `POST /v1/responses`; empty if it accepts it."""
    return list(on_page(_CREATE, _find(body, rules or Rules())))


def _find(body: Any, rules: Rules) -> Iterator[Problem]:
    if not isinstance(body, dict) or has_surrogate(body):
        yield unparsable()
        return
    found: list[Problem] = []
    if not isinstance(body.get("model"), str):
        found.append(_missing("model"))
    items, continues = body.get("input"), _continues(body)
    if not items and not continues and not isinstance(items, dict):
        text = (
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
        )
        found.append(Problem(text, "input", "missing_required_parameter"))
    elif isinstance(items, list):
        for index, item in enumerate(items):
            found += _item_problems(f"input[{index}]", item, rules)
            if isinstance(item, dict) and item.get("type") == "compaction_trigger" and index < len(items) - 1:
                text = "The 'compaction_trigger' item must be the final input item."
                found.append(Problem(text, f"input[{index}]", "invalid_value", page=_COMPACTION))
    elif items is not None and not isinstance(items, str):
        found.append(wrong_type("input", "one of a string or array of objects", items))
    yield from found
    if not found and isinstance(items, list):
        # The provider looks at the order only where every item has the right form.
        yield from _id_problems(items)
        yield from on_page(TOOLS, _pair_problems(items, continues))
        yield from on_page(_REASONING, _reasoning_problems(items, continues))
        yield from image_problems(items, "input_image")


def _continues(body: Item) -> bool:
    return any(body.get(key) is not None for key in ("previous_response_id", "conversation", "prompt"))


# --- one item


def _item_problems(where: str, item: Any, rules: Rules) -> Iterator[Problem]:
    if not isinstance(item, dict):
        yield wrong_type(where, "an object", item)
        return
    kind = item.get("type", "message" if "role" in item else None)
    yield from _own_id_problems(where, kind, item)
    if kind == "message":
        yield from _message_problems(where, item)
    elif kind in _CALLS:
        yield from id_problems(f"{where}.call_id", item.get("call_id"))
        if kind == "function_call":
            yield from name_problems(f"{where}.name", item.get("name"))
            yield from argument_problems(f"{where}.arguments", item.get("arguments"), rules)
        elif kind == "custom_tool_call":
            yield from name_problems(f"{where}.name", item.get("name"))
    elif kind in _OUTPUTS:
        yield from id_problems(f"{where}.call_id", item.get("call_id"))
        yield from _output_problems(f"{where}.output", kind, item)
    elif kind in ("reasoning", "compaction"):
        if kind == "compaction" and not isinstance(item.get("encrypted_content"), str):
            yield _missing(f"{where}.encrypted_content")
            return
        sealed, key = item.get("encrypted_content"), rules.signing_key
        if sealed is not None and key is not None and not is_sealed(sealed, key):
            text = (
                f"The encrypted content for item {item.get('id')} could not be verified. Reason: Encrypted content could "
                "not be decrypted or parsed."
            )
            yield Problem(text, None, "invalid_encrypted_content")
    elif kind not in _OTHERS:
        if kind is None:
            yield _missing(f"{where}.type")
        else:
            yield wrong_value(f"{where}.type", kind, ("message", *_CALLS, *_OUTPUTS, *sorted(_OTHERS)))


def _own_id_problems(where: str, kind: Any, item: Item) -> Iterator[Problem]:
    own = item.get("id")
    if own is None:
        return
    where = f"{where}.id"
    if not isinstance(own, str):
        yield wrong_type(where, "a string", own)
    elif not _ID.fullmatch(own):
        text = (
            f"Invalid '{where}': '{own}'. Expected an ID that contains letters, numbers, underscores, or dashes, but this "
            "value contained additional characters."
        )
        yield Problem(text, where, "invalid_value")
    elif len(own) > MAX_ID:
        yield from id_problems(where, own)
    else:
        prefix = (
            "msg" if kind == "message" and item.get("role") == "assistant" else _ID_PREFIXES.get(kind, "")
        )
        if not own.startswith(prefix):
            text = f"Invalid '{where}': '{own}'. Expected an ID that begins with '{prefix}'."
            yield Problem(text, where, "invalid_value")


def _message_problems(where: str, item: Item) -> Iterator[Problem]:
    role = item.get("role")
    if role is None:
        yield _missing(f"{where}.role")
    elif role not in _ROLES:
        yield wrong_value(f"{where}.role", role, _ROLES)
    if "content" not in item:
        yield _missing(f"{where}.content")
        return
    content = item["content"]
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield wrong_type(f"{where}.content", "one of an array of objects or string", content)
        return
    for place, part in enumerate(content):
        yield from _part_problems(
            f"{where}.content[{place}]", part, _OUTPUT_PARTS if role == "assistant" else _INPUT_PARTS
        )


def _part_problems(where: str, part: Any, allowed: Sequence[str]) -> Iterator[Problem]:
    if not isinstance(part, dict):
        yield wrong_type(where, "an object", part)
    elif part.get("type") is None:
        yield _missing(f"{where}.type")
    elif part["type"] not in allowed:
        yield wrong_value(where, part["type"], allowed)
    elif part["type"] in ("input_text", "output_text", "refusal"):
        key = "refusal" if part["type"] == "refusal" else "text"
        if part.get(key) is None:
            yield _missing(f"{where}.{key}")
        elif not isinstance(part[key], str):
            yield wrong_type(f"{where}.{key}", "a string", part[key])


def _output_problems(where: str, kind: str, item: Item) -> Iterator[Problem]:
    if "output" not in item:
        yield _missing(where)
        return
    output = item["output"]
    if kind in ("function_call_output", "custom_tool_call_output"):
        if isinstance(output, list):
            for place, part in enumerate(output):
                yield from _part_problems(f"{where}[{place}]", part, _INPUT_PARTS)
        elif not isinstance(output, str):
            yield wrong_type(where, "one of an array of objects or string", output)
    elif output is None:
        yield wrong_type(where, "an object", output)


def _missing(where: str) -> Problem:
    return Problem(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")


# --- the order of items


def _id_problems(items: Sequence[Item]) -> Iterator[Problem]:
    seen: set[str] = set()
    for item in items:
        own = item.get("id")
        if own is not None and item.get("type") != "item_reference":
            if own in seen:
                text = f"Duplicate item found with id {own}. Remove duplicate items from your input and try again."
                yield Problem(text, "input")
            seen.add(own)


def _pair_problems(items: Sequence[Item], continues: bool) -> Iterator[Problem]:
    asked: dict[str, str] = {}
    answered: set[str] = set()
    hidden = continues
    for item in items:
        kind = item.get("type")
        if kind in ("item_reference", "compaction"):
            hidden = True  # the call or the output may be an item that only the provider has
        elif kind in _CALLS:
            if item["call_id"] in asked:
                yield Problem(f"Duplicate 'call_id': {item['call_id']}", "input")
            asked[item["call_id"]] = kind
        elif kind in _OUTPUTS:
            call_id, call = item["call_id"], _OUTPUTS[kind]
            if asked.get(call_id) != call and not hidden:
                text = f"No tool call found for {_CALLS[call]} output with call_id {call_id}."
                yield Problem(text, "input")
            elif call_id in answered:
                yield Problem(f"Found multiple outputs for {_CALLS[call]} {call_id}.", "input")
            answered.add(call_id)
    for call_id, kind in asked.items():
        if call_id not in answered and not hidden:
            yield Problem(f"No tool output found for {_CALLS[kind]} {call_id}.", "input")


def _reasoning_problems(items: Sequence[Item], continues: bool) -> Iterator[Problem]:
    before: set[str] = set()
    for index, item in enumerate(items):
        own, kind = item.get("id"), item.get("type")
        if kind == "reasoning":
            before.add(str(own))
            following = items[index + 1] if index + 1 < len(items) else {}
            if own and not _is_reply(following):
                text = f"Item '{own}' of type 'reasoning' was provided without its required following item."
                yield Problem(text, "input")
        elif not continues and isinstance(own, str) and (match := _OWN_ID.fullmatch(own)):
            needed = f"rs_{match[1]}r"
            if needed not in before:
                text = f"Item '{own}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'."
                yield Problem(text, "input")


def _is_reply(item: Item) -> bool:
    """Whether the model wrote an item."""
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        return item.get("role") == "assistant"
    return (
        kind is not None
        and kind not in _OUTPUTS
        and kind not in ("mcp_approval_response", "compaction_trigger")
    )
