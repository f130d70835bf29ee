"""What Anthropic's Messages API refuses, from its documentation and its public error messages.

Written without looking at `compact.messages.legality`, so that one does not repeat the mistakes of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from compact.tools.standins.binding import BINDING, binding_problems, checks_prefixes, split
from compact.tools.standins.native_anthropic import is_compacting, native_problems, signed_block
from compact.tools.standins.pictures import find_blocks, longest_side
from compact.tools.standins.problems import Item, Problem, Rules, has_surrogate, on_page
from compact.tools.standins.signing import is_sealed, is_signed

MESSAGES = "Claude docs: api/messages/create"
ERRORS = "Claude docs: api/errors"
_TOOLS = "Claude docs: agents-and-tools/tool-use/handle-tool-calls"
_THINKING = "Claude docs: build-with-claude/extended-thinking"
_CACHE = "Claude docs: build-with-claude/prompt-caching"
_VISION = "Claude docs: build-with-claude/vision"

MAX_CACHE_MARKS = 4
MAX_IMAGES = 600
SMALL_MAX_IMAGES = 100
"""Of the models with a window of 200,000 tokens."""
MANY_IMAGES, MANY_IMAGES_SIDE = 20, 2_000
"""A request with more images than that may have none with a longer side."""
MAX_SIDE = 8_000
_SMALL = ("claude-3", "haiku-4", "opus-4-1", "opus-4-2", "opus-4-5", "sonnet-4-2", "sonnet-4-5")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_USER_BLOCKS = frozenset({"tool_result", "container_upload"})
_ASSISTANT_BLOCKS = frozenset(
    {"tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"}
)
_SERVER_RESULTS = frozenset(
    {
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
        "mcp_tool_result",
    }
)
_BLOCKS = (
    _USER_BLOCKS
    | _ASSISTANT_BLOCKS
    | _SERVER_RESULTS
    | {"text", "image", "document", "search_result", "compaction", "fallback"}
)
_RESULT_BLOCKS = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
_SYSTEM_BLOCKS = frozenset({"text", "tool_addition", "tool_removal"})


def find_problems(body: Any, rules: Rules | None = None, *, counting: bool = False) -> list[Problem]:
    """Every reason why Anthropic refuses a body; empty if it accepts it.

    Args:
        body: The JSON body of `POST /v1/messages`.
        rules: What this model accepts.
        counting: Whether it is a request to `count_tokens`, which has no `max_tokens`.
    """
    return list(on_page(MESSAGES, _find(body, rules or Rules(), counting)))


def _find(body: Any, rules: Rules, counting: bool) -> Iterator[Problem]:
    if not isinstance(body, dict):
        yield Problem("The request body is not valid JSON: expected an object")
        return
    if has_surrogate(body):
        yield Problem("The request body is not valid JSON: no low surrogate in string")
        return
    messages = body.get("messages")
    found = list(_field_problems(body, counting))
    if not isinstance(messages, list):
        missing = "Field required" if messages is None else "Input should be a valid list"
        found.append(Problem(f"messages: {missing}"))
        messages = []
    elif not messages and is_compacting(body):
        found += native_problems(body, rules)
    elif not messages:
        found.append(Problem("messages: at least one message is required"))
    for index, message in enumerate(messages):
        # A request for a summary continues nothing, so its last message is like any other.
        is_last = index == len(messages) - 1 and not is_compacting(body)
        found += _message_problems(index, message, is_last, rules)
    yield from found
    if not found:
        # The provider looks at the order only where every message has the right form.
        yield from _order_problems(messages, body, rules)
        yield from native_problems(body, rules)
        yield from on_page(_TOOLS, _pair_problems(messages))
        yield from on_page(_THINKING, _thinking_problems(messages, body, rules))
        yield from on_page(_TOOLS, _tool_problems(messages, body, rules))
        yield from on_page(_VISION, _image_problems(messages, body))
    yield from on_page(_CACHE, _mark_problems(body))


def _field_problems(body: Item, counting: bool) -> Iterator[Problem]:
    if not isinstance(body.get("model"), str):
        yield Problem("model: Field required")
    limit = body.get("max_tokens")
    if not counting and (not isinstance(limit, int) or isinstance(limit, bool)):
        yield Problem(
            "max_tokens: Field required" if limit is None else "max_tokens: Input should be a valid integer"
        )
    system = body.get("system")
    if isinstance(system, list):
        for place, block in enumerate(system):
            yield from _block_problems(f"system.{place}", block, frozenset({"text"}))
    elif system is not None and not isinstance(system, str):
        yield Problem("system: Input should be a valid list")
    names = [tool.get("name") for tool in body.get("tools") or () if isinstance(tool, dict)]
    for place, name in enumerate(names):
        if isinstance(name, str) and not _TOOL_NAME.fullmatch(name):
            yield Problem(
                f"tools.{place}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )
    if len(set(names)) != len(names):
        yield Problem("tools: Tool names must be unique.")


# --- one message


def _message_problems(index: int, message: Any, is_last: bool, rules: Rules) -> Iterator[Problem]:
    where = f"messages.{index}"
    if not isinstance(message, dict):
        yield Problem(f"{where}: Input should be a valid dictionary")
        return
    role = message.get("role")
    if role == "system" and not rules.system_messages:
        yield Problem(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )
    elif role not in ("user", "assistant", "system"):
        yield Problem(f"{where}.role: Input should be 'user' or 'assistant'")
    for key in message:
        if key not in ("role", "content"):
            yield Problem(f"{where}.{key}: Extra inputs are not permitted")
    yield from _content_problems(where, message, is_last)


def _content_problems(where: str, message: Item, is_last: bool) -> Iterator[Problem]:
    if "content" not in message:
        yield Problem(f"{where}.content: Field required")
        return
    content, role = message["content"], message.get("role")
    if not isinstance(content, str | list):
        yield Problem(f"{where}.content: Input should be a valid list")
        return
    if not content:
        if not (role == "assistant" and is_last):
            yield Problem(
                f"{where}: all messages must have non-empty content except for the optional final assistant message"
            )
        return
    if isinstance(content, str):
        if not content.strip():
            yield Problem("messages: text content blocks must contain non-whitespace text")
    else:
        allowed = _SYSTEM_BLOCKS if role == "system" else _BLOCKS
        for place, block in enumerate(content):
            yield from _block_problems(f"{where}.content.{place}", block, allowed)
            yield from _side_problems(f"{where}.content.{place}", block, role)
    if role == "assistant" and is_last and _last_text(content).rstrip() != _last_text(content):
        yield Problem("messages: final assistant content cannot end with trailing whitespace")


def _side_problems(where: str, block: Any, role: Any) -> Iterator[Problem]:
    kind = block.get("type") if isinstance(block, dict) else None
    if role == "user" and kind in _ASSISTANT_BLOCKS:
        yield Problem(f"{where}: `{kind}` blocks can only be in `assistant` messages")
    if role == "assistant" and kind in _USER_BLOCKS:
        yield Problem(f"{where}: `{kind}` blocks can only be in `user` messages")


def _block_problems(where: str, block: Any, allowed: frozenset[str]) -> Iterator[Problem]:
    if not isinstance(block, dict):
        yield Problem(f"{where}: Input should be a valid dictionary or object to extract fields from")
        return
    kind = block.get("type")
    if not isinstance(kind, str):
        yield Problem(f"{where}.type: Field required")
        return
    if kind not in allowed:
        tags = ", ".join(f"'{name}'" for name in sorted(allowed))
        yield Problem(
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
        return
    if kind == "text":
        yield from _text_problems(where, block)
    elif kind == "tool_use":
        yield from _use_problems(where, block)
    elif kind == "tool_result":
        yield from _result_problems(where, block)
    elif kind == "thinking":
        for key in ("thinking", "signature"):
            if not isinstance(block.get(key), str):
                yield Problem(f"{where}.thinking.{key}: Field required")
    elif kind == "redacted_thinking" and not isinstance(block.get("data"), str):
        yield Problem(f"{where}.redacted_thinking.data: Field required")


def _text_problems(where: str, block: Item) -> Iterator[Problem]:
    text = block.get("text")
    if not isinstance(text, str):
        yield Problem(
            f"{where}.text.text: {'Field required' if text is None else 'Input should be a valid string'}"
        )
    elif not text:
        if block.get("cache_control") is not None:
            yield Problem(f"{where}.text: cache_control cannot be set for empty text blocks")
        yield Problem("messages: text content blocks must be non-empty")
    elif not text.strip():
        yield Problem("messages: text content blocks must contain non-whitespace text")


def _use_problems(where: str, block: Item) -> Iterator[Problem]:
    call_id, name = block.get("id"), block.get("name")
    if not isinstance(call_id, str):
        yield Problem(f"{where}.tool_use.id: Field required")
    elif not _ID.fullmatch(call_id):
        yield Problem(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(name, str):
        yield Problem(f"{where}.tool_use.name: Field required")
    elif not _TOOL_NAME.fullmatch(name):
        yield Problem(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(block.get("input"), dict):
        yield Problem(f"{where}.tool_use.input: Input should be a valid dictionary")


def _result_problems(where: str, block: Item) -> Iterator[Problem]:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str):
        yield Problem(f"{where}.tool_result.tool_use_id: Field required")
    elif not _ID.fullmatch(call_id):
        yield Problem(f"{where}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    content = block.get("content", "")
    if isinstance(content, list):
        for place, inner in enumerate(content):
            yield from _block_problems(f"{where}.tool_result.content.{place}", inner, _RESULT_BLOCKS)
    elif not isinstance(content, str):
        yield Problem(f"{where}.tool_result.content: Input should be a valid list")


def _last_text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    last = content[-1]
    text = last.get("text") if isinstance(last, dict) and last.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


# --- the order of messages


def _order_problems(messages: Sequence[Item], body: Item, rules: Rules) -> Iterator[Problem]:
    opens = signed_block(messages[0]) is not None
    if messages[0]["role"] != "user" and not opens:
        yield Problem('messages: first message must use the "user" role')
    for index in range(1, len(messages)):
        before, role = messages[index - 1]["role"], messages[index]["role"]
        if role == "system" and before != "user":
            yield Problem(f"messages.{index}: a system message must directly follow a user message")
        elif rules.alternate_roles and before == role and not (opens and index == 1):
            yield Problem(
                'messages: roles must alternate between "user" and "assistant", but found multiple '
                f'"{role}" roles in a row'
            )
    ends_open = messages[-1]["role"] == "assistant" and not is_compacting(body)
    if ends_open and not rules.prefill and not _blocks(messages[-1], "tool_use"):
        yield Problem(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _pair_problems(messages: Sequence[Item]) -> Iterator[Problem]:
    used: set[str] = set()
    server_calls: set[str] = set()
    for index, message in enumerate(messages):
        asked = [block["id"] for _, block in _blocks(messages[index - 1], "tool_use")] if index else []
        yield from _answer_problems(index, message, asked)
        calls = _blocks(message, "tool_use")
        for place, block in calls:
            if block["id"] in used:
                yield Problem(f"messages.{index}.content.{place}: `tool_use` ids must be unique")
            used.add(block["id"])
        following = messages[index + 1] if index + 1 < len(messages) else {"role": "", "content": []}
        open_calls = [block["id"] for _, block in calls if block["id"] not in _leading_results(following)]
        if open_calls:
            yield Problem(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(open_calls)}. Each `tool_use` block must have a corresponding `tool_result` block in "
                "the next message."
            )
        yield from _server_problems(index, message, server_calls)


def _answer_problems(index: int, message: Item, asked: list[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for place, block in _blocks(message, "tool_result"):
        call_id = block["tool_use_id"]
        if call_id not in asked:
            yield Problem(
                f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        elif call_id in seen:
            yield Problem(
                f"messages.{index}.content.{place}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {call_id}"
            )
        seen.add(call_id)


def _leading_results(message: Item) -> set[str]:
    """The calls that a message answers before it says anything else."""
    found: set[str] = set()
    for block in message["content"] if isinstance(message["content"], list) else ():
        if block["type"] != "tool_result":
            break
        found.add(block["tool_use_id"])
    return found


def _server_problems(index: int, message: Item, calls: set[str]) -> Iterator[Problem]:
    for place, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
        kind = block["type"]
        if kind in ("server_tool_use", "mcp_tool_use"):
            calls.add(str(block.get("id")))
        elif kind in _SERVER_RESULTS and block.get("tool_use_id") not in calls:
            asks = "mcp_tool_use" if kind == "mcp_tool_result" else "server_tool_use"
            yield Problem(
                f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `{kind}` blocks: "
                f"{block.get('tool_use_id')}. Each `{kind}` block must have a corresponding `{asks}` block before it."
            )


def _blocks(message: Item, kind: str) -> list[tuple[int, Item]]:
    content = message["content"]
    if not isinstance(content, list):
        return []
    return [(place, block) for place, block in enumerate(content) if block["type"] == kind]


# --- thinking, tools, cache marks


def _thinking_problems(messages: Sequence[Item], body: Item, rules: Rules) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        content = message["content"]
        if message["role"] != "assistant" or not isinstance(content, list) or not content:
            continue
        if content[-1]["type"] in ("thinking", "redacted_thinking"):
            yield Problem(f"messages.{index}: The final block in an assistant message cannot be `thinking`.")
        if rules.signing_key is None:
            continue
        for place, block in enumerate(content):
            if block["type"] == "thinking" and not is_signed(
                block["thinking"], split(block["signature"])[0], rules.signing_key
            ):
                yield Problem(f"messages.{index}.content.{place}: Invalid `signature` in `thinking` block")
            if block["type"] == "redacted_thinking" and not is_sealed(block["data"], rules.signing_key):
                yield Problem(
                    f"messages.{index}.content.{place}: Invalid `data` in `redacted_thinking` block"
                )
    thinking = body.get("thinking")
    settings = thinking if isinstance(thinking, dict) else {}
    model, is_enabled = str(body.get("model")), settings.get("type") == "enabled"
    if checks_prefixes(model) and is_enabled:
        yield Problem(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'
        )
    elif is_enabled:
        yield from _open_loop_problems(messages)
    binding = settings.get("block_binding")
    drops = isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "drop_block"
    checks = checks_prefixes(model) if rules.prefix_checks is None else rules.prefix_checks
    if checks and not drops and rules.signing_key is not None:
        yield from on_page(BINDING, binding_problems(body))


def _open_loop_problems(messages: Sequence[Item]) -> Iterator[Problem]:
    """With thinking enabled, the reply whose tool calls are being answered begins with its thinking."""
    start = len(messages)
    while start and (messages[start - 1]["role"] == "assistant" or _leading_results(messages[start - 1])):
        start -= 1
    if start == len(messages) or not _leading_results(messages[-1]):
        return
    content = messages[start]["content"]
    first = content[0]["type"] if isinstance(content, list) else "text"
    if first not in ("thinking", "redacted_thinking"):
        yield Problem(
            f"messages.{start}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks)."
        )


def _tool_problems(messages: Sequence[Item], body: Item, rules: Rules) -> Iterator[Problem]:
    uses_tools = any(_blocks(message, kind) for message in messages for kind in ("tool_use", "tool_result"))
    if uses_tools and rules.tools_required and not body.get("tools"):
        yield Problem("Requests which include `tool_use` or `tool_result` blocks must define tools")


def _image_problems(messages: Sequence[Item], body: Item) -> Iterator[Problem]:
    images = list(find_blocks(messages, "image", "messages"))
    model = str(body.get("model"))
    most = SMALL_MAX_IMAGES if any(each in model for each in _SMALL) else MAX_IMAGES
    if len(images) > most:
        yield Problem(f"Too many images in the request: {len(images)}, the maximum is {most}")
    is_many = len(images) > MANY_IMAGES
    side = MANY_IMAGES_SIDE if is_many else MAX_SIDE
    for where, block in images:
        source = block.get("source")
        data = source.get("data") if isinstance(source, dict) else None
        if isinstance(data, str) and longest_side(data) > side:
            yield Problem(
                f"{where}.image.source.base64.data: At least one of the image dimensions exceed max allowed size"
                f"{' for many-image requests' if is_many else ''}: {side} pixels"
            )


def _mark_problems(body: Item) -> Iterator[Problem]:
    marks = list(_marks(body))
    for where, block in marks:
        if block.get("type") in ("thinking", "redacted_thinking"):
            yield Problem(f"{where}.{block['type']}.cache_control: Extra inputs are not permitted")
    found = len(marks) + (body.get("cache_control") is not None)
    if found > MAX_CACHE_MARKS:
        yield Problem(
            f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {found}."
        )
    short = False
    for where, block in marks:
        mark = block["cache_control"]
        if (
            not isinstance(mark, dict)
            or mark.get("type") != "ephemeral"
            or mark.get("ttl", "5m") not in ("5m", "1h")
        ):
            yield Problem(
                f"{where}.cache_control: Input tag found using 'type' does not match any of the expected tags: 'ephemeral'"
            )
        elif mark.get("ttl") == "1h" and short:
            yield Problem(
                f"{where}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
                "`messages`."
            )
        short = short or (isinstance(mark, dict) and mark.get("ttl", "5m") == "5m")


def _marks(body: Item) -> Iterator[tuple[str, Item]]:
    """Every block with a cache mark, in the order in which the provider reads them."""
    yield from _marks_in("tools", body.get("tools"))
    yield from _marks_in("system", body.get("system"))
    for index, message in enumerate(body.get("messages") or ()):
        if isinstance(message, dict):
            yield from _marks_in(f"messages.{index}.content", message.get("content"))


def _marks_in(where: str, blocks: Any) -> Iterator[tuple[str, Item]]:
    for place, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if isinstance(block, dict):
            if block.get("type") == "tool_result":
                yield from _marks_in(f"{where}.{place}.tool_result.content", block.get("content"))
            if block.get("cache_control") is not None:
                yield f"{where}.{place}", block
