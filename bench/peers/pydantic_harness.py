"""Pydantic AI harness: `TieredCompaction`, its tiers that need no model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import tiktoken
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
from pydantic_ai_harness.compaction import (
    ClampOversizedMessages,
    ClearToolResults,
    DeduplicateFileReads,
    SlidingWindowCompaction,
    TieredCompaction,
)

from bench.peers import Compaction, Item, Native, Peer, scaled
from bench.peers._chat import arguments_of, text_of

_PAIRS = (256, 128, 64, 32, 16, 8, 4, 2, 1, 0)
_READS = ("read", "view", "open", "cat")


class Tool(Peer):
    """Called as the agent calls it: before a model request."""

    TITLE = "Pydantic AI harness"
    DISTRIBUTION = "pydantic-ai-harness"
    IMPORT = "from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, TieredCompaction"
    CALLED = (
        "`TieredCompaction(tiers=[ClearToolResults(max_tokens=1), SlidingWindowCompaction(max_tokens=1, "
        "keep_tokens=budget // 2)], target_tokens=budget)`; for retention first with `tokenizer=` tiktoken's everywhere and the "
        "tiers `DeduplicateFileReads(file_key=the same call)`, `ClearToolResults(keep_pairs=256 to 0)`, then also "
        "`ClampOversizedMessages(max_part_tokens=2_000)`, then also `SlidingWindowCompaction(keep_tokens=target)` with smaller "
        "and smaller targets"
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
        window: _Tier = SlidingWindowCompaction(max_tokens=1, keep_tokens=budget // 2)
        return _tiered([ClearToolResults(max_tokens=1), window], budget)

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`: what drops whole messages comes last."""
        once: _Tier = DeduplicateFileReads(file_key=_same_read, tokenizer=_tokens)
        for pairs in _PAIRS:
            yield _tiered([once, _cleared(pairs)], budget, _tokens)
        clamped: _Tier = ClampOversizedMessages(max_part_tokens=2_000, tokenizer=_tokens)
        yield _tiered([once, _cleared(0), clamped], budget, _tokens)
        for smaller in (budget, *scaled(budget)):
            window: _Tier = SlidingWindowCompaction(max_tokens=1, keep_tokens=smaller, tokenizer=_tokens)
            yield _tiered([once, _cleared(0), clamped, window], smaller, _tokens)


_Tier = Any


def _cleared(pairs: int) -> _Tier:
    return ClearToolResults(max_tokens=1, keep_pairs=pairs, tokenizer=_tokens)


def _same_read(call: ToolCallPart) -> str | None:
    """Which calls read a file is the agent's to say; two that are the same in every argument are safe to take for one."""
    reads = any(word in call.tool_name.lower() for word in _READS)
    return f"{call.tool_name} {call.args_as_json_str()}" if reads else None


@lru_cache(maxsize=10_000)
def _tokens(text: str) -> int:
    return len(tiktoken.get_encoding("o200k_base").encode(text, disallowed_special=()))


def _tiered(tiers: list[_Tier], target: int, tokenizer: Callable[[str], int] | None = None) -> Compaction:
    strategy: TieredCompaction[None] = TieredCompaction(
        tiers=tiers, target_tokens=target, tokenizer=tokenizer
    )
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
