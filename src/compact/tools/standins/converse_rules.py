"""What Bedrock's Converse refuses, from its documentation, its service model and its public error messages.

Models behind Converse differ; the rules are those of Anthropic's models, which are the strictest about tools and thinking.
Written without looking at `compact.messages.legality`, so that one does not repeat the mistakes of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from compact.tools.standins.problems import Item, Problem, Rules, has_surrogate
from compact.tools.standins.signing import is_sealed, is_signed

_AWS = "Bedrock: latest"
_CONVERSE = f"{_AWS}/APIReference/API_runtime_Converse.html"
_MESSAGE = f"{_AWS}/APIReference/API_runtime_Message.html"
_BLOCK = f"{_AWS}/APIReference/API_runtime_ContentBlock.html"
_USE = f"{_AWS}/APIReference/API_runtime_ToolUseBlock.html"
_RESULT = f"{_AWS}/APIReference/API_runtime_ToolResultBlock.html"
_REASONING = f"{_AWS}/APIReference/API_runtime_ReasoningContentBlock.html"
_TOOLS = f"{_AWS}/userguide/tool-use.html"
_CACHE = f"{_AWS}/userguide/prompt-caching.html"
_CLAUDE = f"{_AWS}/userguide/claude-messages-extended-thinking.html"

MAX_CACHE_POINTS = 4
MAX_IMAGES = 20
MAX_DOCUMENTS = 5
_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BLOCKS = frozenset(
    [
        "text",
        "image",
        "document",
        "video",
        "audio",
        "toolUse",
        "toolResult",
        "guardContent",
        "cachePoint",
        "reasoningContent",
        "citationsContent",
        "searchResult",
    ]
)
_RESULT_BLOCKS = frozenset(["json", "text", "image", "document", "video", "searchResult"])
_SYSTEM_BLOCKS = frozenset({"text", "guardContent", "cachePoint"})


def find_problems(body: Any, rules: Rules | None = None) -> list[Problem]:
    """Every reason why Bedrock refuses the body of `POST /model/{modelId}/converse`; empty if it accepts it."""
    rules = rules or Rules()
    if not isinstance(body, dict) or has_surrogate(body):
        return [_problem("The body of the request is not valid JSON.", _CONVERSE)]
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [
            _problem(
                "The messages field is empty. Add at least one message to the messages field and try again.",
                _CONVERSE,
            )
        ]
    found = list(_system_problems(body))
    for index, message in enumerate(messages):
        found += _message_problems(f"messages.{index}", message)
    if not found:
        # The provider looks at the order only where every message has the right form.
        found += _order_problems(messages)
        found += _pair_problems(messages)
        found += _thinking_problems(messages, rules)
        found += _tool_problems(messages, body, rules)
        found += _point_problems(messages, body)
    return found


def _problem(message: str, page: str) -> Problem:
    return Problem(message, kind="ValidationException", page=page)


def _constraint(value: Any, where: str, rule: str, page: str) -> Problem:
    return _problem(
        f"1 validation error detected: Value '{value}' at '{where}' failed to satisfy constraint: Member must {rule}",
        page,
    )


def _system_problems(body: Item) -> Iterator[Problem]:
    system = body.get("system", [])
    if not isinstance(system, list):
        yield _problem("system: expected type: JSONArray", _CONVERSE)
        return
    for place, block in enumerate(system):
        yield from _union_problems(f"system.{place}", block, _SYSTEM_BLOCKS)
        if isinstance(block, dict) and "text" in block and not str(block["text"] or "").strip():
            yield _problem(
                f"The text field in the SystemContentBlock object at system.{place} is blank. Add text to the text field, and "
                "try again.",
                _CONVERSE,
            )


# --- one message


def _message_problems(where: str, message: Any) -> Iterator[Problem]:
    if not isinstance(message, dict):
        yield _problem(f"{where}: expected type: JSONObject", _MESSAGE)
        return
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        yield _constraint(role, f"{where}.role", "satisfy enum value set: [user, assistant]", _MESSAGE)
    for name in message:
        if name not in ("role", "content"):
            yield _problem(f"{where}: extraneous key [{name}] is not permitted", _MESSAGE)
    if content is not None and not isinstance(content, list):
        yield _problem(f"{where}.content: expected type: JSONArray", _MESSAGE)
    elif not content:
        yield _problem(
            f"The content field in the Message object at {where} is empty. Add a ContentBlock object to the content field and "
            "try again.",
            _MESSAGE,
        )
    else:
        for place, block in enumerate(content):
            yield from _block_problems(f"{where}.content.{place}", block, role)
        yield from _whole_problems(where, content)


def _whole_problems(where: str, content: list[Any]) -> Iterator[Problem]:
    keys = [next(iter(block)) for block in content if isinstance(block, dict) and block]
    if keys and set(keys) == {"cachePoint"}:
        yield _problem(f"{where}.content: a cachePoint must follow the content that it marks", _CACHE)
    if "document" in keys and "text" not in keys:
        yield _problem(f"{where}.content: a message with a document must also have a text block", _MESSAGE)


def _union_problems(where: str, block: Any, known: frozenset[str]) -> Iterator[Problem]:
    if not isinstance(block, dict):
        yield _problem(f"{where}: expected type: JSONObject", _BLOCK)
    elif len(block) != 1:
        yield _problem(f"{where}: a content block must have exactly one member, got {len(block)}", _BLOCK)
    elif not known & block.keys():
        yield _problem(f"{where}: extraneous key [{next(iter(block))}] is not permitted", _BLOCK)


def _block_problems(where: str, block: Any, role: Any) -> Iterator[Problem]:
    wrong = list(_union_problems(where, block, _BLOCKS))
    if wrong:
        yield from wrong
        return
    ((kind, value),) = block.items()
    if kind == "text":
        if not isinstance(value, str):
            yield _problem(f"{where}.text: expected type: String", _BLOCK)
        elif not value.strip():
            yield _problem(
                f"The text field in the ContentBlock object at {where} is blank. Add text to the text field, and try again.",
                _BLOCK,
            )
        return
    if not isinstance(value, dict):
        yield _problem(f"{where}.{kind}: expected type: JSONObject", _BLOCK)
    elif kind == "toolUse":
        yield from _use_problems(f"{where}.toolUse", value, role)
    elif kind == "toolResult":
        yield from _result_problems(f"{where}.toolResult", value, role)
    elif kind == "reasoningContent":
        yield from _reasoning_problems(where, value, role)
    elif kind == "cachePoint" and value.get("type") != "default":
        yield _constraint(
            value.get("type"), f"{where}.cachePoint.type", "satisfy enum value set: [default]", _CACHE
        )
    elif kind == "cachePoint" and value.get("ttl", "5m") not in ("5m", "1h"):
        yield _constraint(
            value.get("ttl"), f"{where}.cachePoint.ttl", "satisfy enum value set: [5m, 1h]", _CACHE
        )


def _use_problems(where: str, use: Item, role: Any) -> Iterator[Problem]:
    if role == "user":
        yield _problem(
            "User messages cannot contain tool uses. Please remove the tool uses and try again.", _TOOLS
        )
    yield from _id_problems(where, use, _USE)
    name = use.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield _constraint(name, f"{where}.name", "satisfy regular expression pattern: [a-zA-Z0-9_-]+", _USE)
    if not isinstance(use.get("input"), dict):
        yield _problem(
            f"The format of the value at {where}.input is invalid. Provide a json object for the field and try again.",
            _USE,
        )


def _result_problems(where: str, result: Item, role: Any) -> Iterator[Problem]:
    if role == "assistant":
        yield _problem(
            "Assistant messages cannot contain tool results. Please remove the tool results and try again.",
            _TOOLS,
        )
    yield from _id_problems(where, result, _RESULT)
    status, content = result.get("status", "success"), result.get("content")
    if status not in ("success", "error"):
        yield _constraint(status, f"{where}.status", "satisfy enum value set: [success, error]", _RESULT)
    if not isinstance(content, list):
        yield _constraint(content, f"{where}.content", "not be null", _RESULT)
        return
    if not content and status == "error":
        yield _problem(f"The content field at {where} cannot be empty when status value is error.", _RESULT)
    for place, block in enumerate(content):
        yield from _union_problems(f"{where}.content.{place}", block, _RESULT_BLOCKS)
        text = block.get("text", "x") if isinstance(block, dict) else "x"
        if not isinstance(text, str):
            yield _problem(f"{where}.content.{place}.text: expected type: String", _RESULT)
        elif not text.strip():
            # Some models take it, some answer that text content blocks must contain non-whitespace text.
            yield _problem("messages: text content blocks must contain non-whitespace text", _RESULT)


def _id_problems(where: str, item: Item, page: str) -> Iterator[Problem]:
    call_id = item.get("toolUseId")
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        yield _constraint(
            call_id, f"{where}.toolUseId", "satisfy regular expression pattern: [a-zA-Z0-9_.:-]+", page
        )


def _reasoning_problems(where: str, reasoning: Item, role: Any) -> Iterator[Problem]:
    if role == "user":
        yield _problem(
            "User messages cannot contain reasoning content. Please remove it and try again.", _REASONING
        )
    said, sealed = reasoning.get("reasoningText"), reasoning.get("redactedContent")
    if (said is None) == (sealed is None):
        yield _problem(f"{where}.reasoningContent: a content block must have exactly one member", _REASONING)
    elif said is not None and not (isinstance(said, dict) and isinstance(said.get("text"), str)):
        yield _constraint(None, f"{where}.reasoningContent.reasoningText.text", "not be null", _REASONING)


# --- the order of messages


def _order_problems(messages: Sequence[Item]) -> Iterator[Problem]:
    if messages[0]["role"] != "user":
        yield _problem(
            "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
            _CONVERSE,
        )
    if any(one["role"] == two["role"] for one, two in pairwise(messages)):
        yield _problem(
            "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between "
            "user and assistant roles and try again.",
            _CONVERSE,
        )
    last = messages[-1]["content"][-1].get("text", "x")
    if messages[-1]["role"] == "assistant" and last != last.rstrip():
        yield _problem("messages: final assistant content cannot end with trailing whitespace", _CONVERSE)


def _pair_problems(messages: Sequence[Item]) -> Iterator[Problem]:
    used: set[str] = set()
    for index, message in enumerate(messages):
        asked = [use["toolUseId"] for use in _all(messages[index - 1], "toolUse")] if index else []
        given = [result["toolUseId"] for result in _all(message, "toolResult")]
        calls = [use["toolUseId"] for use in _all(message, "toolUse")]
        where = f"messages.{index}.content"
        open_calls = [call_id for call_id in asked if call_id not in given]
        if open_calls:
            yield _expected(where, open_calls)
        if len(given) > len(asked):
            yield _problem(
                f"The number of toolResult blocks at {where} exceeds the number of toolUse blocks of previous turn.",
                _TOOLS,
            )
        elif set(given) - set(asked):
            yield _problem(
                f"The toolResult blocks at {where} answer no toolUse block of the previous turn.", _TOOLS
            )
        elif len(set(given)) < len(given):
            yield _problem(
                f"The toolResult blocks at {where} contain duplicate Ids: {', '.join(given)}", _TOOLS
            )
        said = [next(iter(block)) for block in message["content"] if "cachePoint" not in block]
        if given and "toolResult" in said[len(given) :]:
            yield _problem(
                f"{where}: the toolResult blocks must be the first blocks of their message.", _TOOLS
            )
        repeated = [
            call_id for place, call_id in enumerate(calls) if call_id in used or call_id in calls[:place]
        ]
        if repeated:
            yield _problem(
                f"The toolUse blocks at {where} contain duplicate Ids: {', '.join(repeated)}", _TOOLS
            )
        used.update(calls)
    unanswered = [use["toolUseId"] for use in _all(messages[-1], "toolUse")]
    if unanswered:
        yield _expected(f"messages.{len(messages)}.content", unanswered)


def _expected(where: str, ids: Sequence[str]) -> Problem:
    return _problem(f"Expected toolResult blocks at {where} for the following Ids: {', '.join(ids)}", _TOOLS)


def _thinking_problems(messages: Sequence[Item], rules: Rules) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        said = [block for block in message["content"] if "cachePoint" not in block]
        if message["role"] == "assistant" and said and "reasoningContent" in said[-1]:
            yield _problem(
                f"messages.{index}: The final block in an assistant message cannot be `thinking`.", _CLAUDE
            )
        for place, block in enumerate(message["content"] if rules.signing_key is not None else ()):
            assert rules.signing_key is not None
            reasoning = block.get("reasoningContent", {})
            text, sealed = reasoning.get("reasoningText"), reasoning.get("redactedContent")
            if text is not None and not is_signed(text["text"], text.get("signature"), rules.signing_key):
                yield _problem(
                    f"messages.{index}.content.{place}: Invalid `signature` in `thinking` block", _CLAUDE
                )
            if sealed is not None and not is_sealed(sealed, rules.signing_key):
                yield _problem(
                    f"messages.{index}.content.{place}: Invalid `data` in `redacted_thinking` block", _CLAUDE
                )


def _tool_problems(messages: Sequence[Item], body: Item, rules: Rules) -> Iterator[Problem]:
    config = body.get("toolConfig")
    tools = config.get("tools") if isinstance(config, dict) else None
    uses_tools = any(_all(message, kind) for message in messages for kind in ("toolUse", "toolResult"))
    if uses_tools and rules.tools_required and not tools:
        yield _problem(
            "The toolConfig field must be defined when using toolUse and toolResult content blocks.", _TOOLS
        )
    names = [tool["toolSpec"].get("name") for tool in tools or () if isinstance(tool.get("toolSpec"), dict)]
    if len(set(names)) < len(names):
        yield _problem("The toolConfig field contains duplicate tool names.", _TOOLS)
    counts = {
        kind: sum(len(_all(message, kind)) for message in messages if message["role"] == "user")
        for kind in ("image", "document")
    }
    if counts["image"] > MAX_IMAGES:
        yield _problem(f"A request can have up to {MAX_IMAGES} images, found {counts['image']}.", _MESSAGE)
    if counts["document"] > MAX_DOCUMENTS:
        yield _problem(
            f"A request can have up to {MAX_DOCUMENTS} documents, found {counts['document']}.", _MESSAGE
        )


def _point_problems(messages: Sequence[Item], body: Item) -> Iterator[Problem]:
    config = body.get("toolConfig")
    lists = [message["content"] for message in messages]
    lists += [body.get("system") or [], (config.get("tools") if isinstance(config, dict) else None) or []]
    found = sum("cachePoint" in block for blocks in lists for block in blocks)
    if found > MAX_CACHE_POINTS:
        yield _problem(
            f"A maximum of {MAX_CACHE_POINTS} blocks with cache_control may be provided. Found {found}.",
            _CACHE,
        )


def _all(message: Item, kind: str) -> list[Item]:
    return [block[kind] for block in message["content"] if kind in block]
