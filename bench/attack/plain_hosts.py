"""Loops over a client, as people write them for all their users: one wrapped client, without an id for the conversation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from compact import CompactManager
from compact.integrations.recall import RecallTools

Item = dict[str, Any]
Send = Callable[..., tuple[list[Any], Any]]
"""Sends a list, and returns what is added to it and the reply itself."""


def chat(manager: CompactManager, provider: Any, *, raw: bool = False) -> Send:
    """Return what sends chat completions. `raw`: the host reads the replies itself."""
    import openai

    client: Any = manager.wrap(openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0))
    completions = client.chat.completions.with_raw_response if raw else client.chat.completions

    def send(items: list[Any], tools: RecallTools, prompt: str) -> tuple[list[Any], Any]:
        system = [{"role": "system", "content": prompt}] if prompt else []
        offered = [
            *tools.chat,
            {"type": "function", "function": {"name": "get_report", "parameters": NO_ARGUMENTS}},
        ]
        reply = completions.create(model="gpt-4o", messages=[*system, *items], tools=offered)
        reply = reply.parse() if raw else reply
        return [reply.choices[0].message.model_dump(exclude_none=True)], reply

    return send


def responses(manager: CompactManager, provider: Any) -> Send:
    """Return what sends Responses."""
    import openai

    client: Any = manager.wrap(openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0))

    def send(items: list[Any], tools: RecallTools, prompt: str) -> tuple[list[Any], Any]:
        offered = [*tools.responses, {"type": "function", "name": "get_report", "parameters": NO_ARGUMENTS}]
        more = {"instructions": prompt} if prompt else {}
        reply = client.responses.create(model="gpt-4o", input=items, tools=offered, **more)
        return [item.model_dump(exclude_none=True) for item in reply.output], reply

    return send


def anthropic_messages(manager: CompactManager, provider: Any) -> Send:
    """Return what sends messages."""
    import anthropic

    client: Any = manager.wrap(anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0))

    def send(items: list[Any], tools: RecallTools, prompt: str) -> tuple[list[Any], Any]:
        offered = [*tools.anthropic, {"name": "get_report", "input_schema": NO_ARGUMENTS}]
        more = {"system": prompt} if prompt else {}
        reply = client.messages.create(model="gpt-4o", messages=items, tools=offered, max_tokens=99, **more)
        content = [block.model_dump(exclude_none=True) for block in reply.content]
        return [{"role": "assistant", "content": content}], reply

    return send


def litellm_completion(manager: CompactManager, provider: Any) -> Send:
    """Return what sends chat completions through LiteLLM."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it asks the network otherwise
    import litellm

    from compact.integrations.litellm import CompactHook

    complete = CompactHook(manager)(litellm.completion)
    where = {"api_base": provider.openai_url, "api_key": "none", "num_retries": 0}

    def send(items: list[Any], tools: RecallTools, prompt: str) -> tuple[list[Any], Any]:
        system = [{"role": "system", "content": prompt}] if prompt else []
        offered = [
            *tools.chat,
            {"type": "function", "function": {"name": "get_report", "parameters": NO_ARGUMENTS}},
        ]
        reply = complete("openai/gpt-4o", [*system, *items], tools=offered, **where)
        message = reply.choices[0].message.model_dump(exclude_none=True)
        wanted = ("role", "content", "tool_calls")
        return [{key: message.get(key) for key in wanted if key in message or key == "content"}], reply

    return send


NO_ARGUMENTS: Item = {"type": "object", "properties": {}}
FULL = 100
"""From this size on, LiteLLM takes part. It takes seconds to import."""
CLIENTS: dict[str, Callable[..., Send]] = {
    "chat": chat,
    "responses": responses,
    "anthropic": anthropic_messages,
}


def results(dialect: str, answers: Sequence[tuple[str, str]]) -> list[Any]:
    """Tool results, by call id, as the next request has them."""
    if dialect == "chat":
        return [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in answers]
    if dialect == "responses":
        return [{"type": "function_call_output", "call_id": id_, "output": text} for id_, text in answers]
    blocks = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in answers]
    return [{"role": "user", "content": blocks}]
