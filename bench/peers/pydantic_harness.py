"""Pydantic AI harness: `TieredCompaction`, its tiers that need no model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, TieredCompaction

from bench.peers import Compaction, Item, Native, Peer, scaled
from bench.peers._chat import arguments_of, text_of

_PAIRS = (256, 64, 16, 3)


class Tool(Peer):
    """Called as the agent calls it: before a model request."""

    TITLE = "Pydantic AI harness"
    DISTRIBUTION = "pydantic-ai-harness"
    IMPORT = "from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, TieredCompaction"
    CALLED = (
        "`TieredCompaction([ClearToolResults(max_tokens=1), SlidingWindowCompaction(max_tokens=1, "
        "keep_tokens=budget // 2)], target_tokens=budget)`"
    )
    BETTER = "typed strategies that compose, with a receipt of what went and loaded tools kept loaded"
    DEFAULT_KEEPS_MOST = False

    def load(self, messages: list[Item]) -> Native:
        """See `Peer.load`."""
        names = {
            call["id"]: call["function"]["name"] for item in messages for call in item.get("tool_calls") or []
        }
        return [_load(item, names) for item in messages]

    def back(self, native: Native) -> list[Item]:
        """See `Peer.back`."""
        return [item for message in native for item in _back(message)]

    def below(self, native: Native) -> Callable[[Native], Any]:
        """See `Peer.below`."""
        return self.default(100_000_000)

    def default(self, budget: int) -> Compaction:
        """See `Peer.default`."""
        clear: ClearToolResults[None] = ClearToolResults(max_tokens=1)
        return _tiered(clear, budget, budget // 2)

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`."""
        for pairs in _PAIRS:
            clear: ClearToolResults[None] = ClearToolResults(max_tokens=1, keep_pairs=pairs)
            yield _tiered(clear, budget, budget * 8 // 10)
        for smaller in scaled(budget):
            yield self.default(smaller)


def _tiered(clear: Any, target: int, kept: int) -> Compaction:
    window: SlidingWindowCompaction[None] = SlidingWindowCompaction(max_tokens=1, keep_tokens=kept)
    strategy: TieredCompaction[None] = TieredCompaction(tiers=[clear, window], target_tokens=target)
    model = TestModel()

    def compact(native: Native) -> Native:
        messages = list(native)
        run = RunContext(deps=None, model=model, usage=RunUsage(), messages=messages)
        request = ModelRequestContext(
            model=model,
            messages=messages,
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )
        _loop.run_until_complete(strategy.before_model_request(run, request))
        return run.messages

    return compact


_loop = asyncio.new_event_loop()


def _load(item: Item, names: dict[str, str]) -> Any:
    text = text_of(item)
    match item["role"]:
        case "assistant":
            parts: list[Any] = [TextPart(content=text)] if text else []
            for call in item.get("tool_calls") or []:
                name = call["function"]["name"]
                parts.append(ToolCallPart(tool_name=name, args=arguments_of(call), tool_call_id=call["id"]))
            return ModelResponse(parts=parts)
        case "tool":
            name, call_id = names[item["tool_call_id"]], item["tool_call_id"]
            return ModelRequest(parts=[ToolReturnPart(tool_name=name, content=text, tool_call_id=call_id)])
        case "user":
            return ModelRequest(parts=[UserPromptPart(content=text)])
        case _:
            return ModelRequest(parts=[SystemPromptPart(content=text)])


def _back(message: Any) -> Iterator[Item]:
    if isinstance(message, ModelResponse):
        calls = [
            {
                "id": part.tool_call_id,
                "type": "function",
                "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
            }
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        words = "\n".join(part.content for part in message.parts if isinstance(part, TextPart))
        yield {"role": "assistant", "content": words, **({"tool_calls": calls} if calls else {})}
        return
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
        elif isinstance(part, SystemPromptPart):
            yield {"role": "system", "content": part.content}
        elif isinstance(part, UserPromptPart):
            yield {"role": "user", "content": str(part.content)}
