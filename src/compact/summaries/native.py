"""The provider's own compaction as a summarizer: what is asked, and what is read from the reply. Pure.

Anthropic, on demand: the messages go with `compaction`, and a signed block comes back that stands first in their place. OpenAI:
`/responses/compact` gives back the messages of the user and one encrypted item, and a list that ends in `compaction_trigger` is
answered by such an item. Both get the messages as the model saw them. Nothing that the provider does not have already is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from compact.errors import CompactError
from compact.messages.compaction_blocks import COMPACTION, TRIGGER
from compact.messages.dialects.wire import plain
from compact.summaries.request import Reply

Provider: TypeAlias = Literal["anthropic", "openai"]
NATIVE = "native"
"""The value of `summary.model` that means the agent's own provider."""
BETA = "compact-2026-09-04"
"""The beta header of Anthropic's requests for a block, and of all requests that carry one."""
DIALECTS: Mapping[Provider, str] = {"anthropic": "anthropic", "openai": "responses"}
"""The dialect in which each provider compacts."""
_LEAST_OUTPUT = 8_192
"""Tokens. Anthropic's limit covers the thinking before the summary, too."""
_WORDS = {
    "max_tokens": "the summary was cut off at max_tokens",
    "refusal": "the request was declined",
    "tool_use": "the model called a tool instead",
    "end_turn": "the reply has no text",
    "model_context_window_exceeded": "there was no room for the summary in the model's window",
}


def anthropic_body(
    model: str, items: Sequence[Any], system: Any, tools: Any, max_tokens: int
) -> dict[str, Any]:
    """The request for Anthropic's block. A system prompt that opens the list goes where the provider wants it."""
    prompts = _count_prompts(items)
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": max(_LEAST_OUTPUT, 2 * max_tokens),
        "messages": list(items[prompts:]),
        "compaction": {"type": "summarize"},
    }
    blocks = [block for item in items[:prompts] for block in _blocks_of(plain(item).get("content"))]
    if system or blocks:
        body["system"] = [*_blocks_of(system), *blocks] if blocks else system
    return {**body, "tools": tools} if tools else body


def openai_body(model: str, items: Sequence[Any], system: Any) -> dict[str, Any]:
    """The request for OpenAI's compacted list."""
    body: dict[str, Any] = {"model": model, "input": list(items)}
    return {**body, "instructions": system} if system else body


def trigger_items(items: Sequence[Any]) -> list[Any]:
    """A list that OpenAI's Responses answer with a compaction item instead of a reply."""
    return [*items, {"type": TRIGGER}]


def read_anthropic(reply: Any) -> Reply:
    """The block of a reply, in the message that stands for what was sent.

    Raises:
        CompactError: it holds no block; says why.
    """
    data = as_data(reply)
    reason = data.get("stop_reason")
    if reason != "compaction":
        why = _WORDS.get(str(reason), f"the reply ended with {reason}")
        raise CompactError(f"the provider wrote no summary: {why}", hint="Our own summary stands instead")
    blocks = data.get("content") or []
    block = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], Mapping) else {}
    if block.get("type") != COMPACTION or not block.get("content") or not block.get("signature"):
        raise CompactError("the provider's reply is not one signed compaction block")
    return Reply("", by_model=True, items=({"role": "assistant", "content": [dict(block)]},))


def read_openai(reply: Any) -> Reply:
    """The items of a reply that stand for what was sent: messages of the user, and the encrypted item behind them.

    Raises:
        CompactError: there is not exactly one such item, or something else beside it.
    """
    output = as_data(reply).get("output")
    items = [dict(item) for item in output or () if isinstance(item, Mapping)]
    sealed = [item for item in items if item.get("type") == COMPACTION]
    if len(sealed) != 1 or not sealed[0].get("encrypted_content"):
        raise CompactError(f"the provider's reply holds {len(sealed)} compaction items instead of one")
    users = [
        item for item in items if item.get("role") == "user" and item.get("type", "message") == "message"
    ]
    if len(users) + 1 != len(items) or items[-1] is not sealed[0]:
        raise CompactError("the provider's reply holds more than messages of the user and a compaction item")
    return Reply("", by_model=True, items=tuple(items))


def as_data(reply: Any) -> Mapping[str, Any]:
    """A reply of an SDK, or of a host, as it came over the wire. Fields that were not sent are left out.

    Raises:
        CompactError: it is nothing of that kind, such as a stream.
    """
    for name in ("to_dict", "model_dump"):
        dump = getattr(reply, name, None)
        if callable(dump):
            reply = dump(mode="json", exclude_unset=True, warnings=False)
            break
    if not isinstance(reply, Mapping):
        raise CompactError(f"the provider's reply cannot be read: it is a {type(reply).__name__}")
    return reply


def _count_prompts(items: Sequence[Any]) -> int:
    found = 0
    while found < len(items) and plain(items[found]).get("role") == "system":
        found += 1
    return found


def _blocks_of(content: Any) -> list[Any]:
    if not content:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
