"""Recall tools for plain loops: offered in one line, answered in one line.

tools = RecallTools(manager, session_id)
reply = client.chat.completions.create(messages=messages, tools=[*mine, *tools.chat], ...)
messages += tools.answers(reply)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from compact.archive.recall import no_session, run
from compact.integrations.calls import check_manager
from compact.messages import ToolCall
from compact.messages.dialects import get
from compact.messages.dialects.wire import plain
from compact.runtime.guidance import prompt_segment
from compact.runtime.manager import CompactManager

__all__ = ["RecallTools", "RecoveryTools"]

_REMEMBERED = 64
"""Sessions whose search index is kept."""


class RecallTools:
    """read_file, grep, ls and search over what left a session's context, in the shape of each provider.

    `prefix` is put before their names, for an agent with a `read_file` of its own. Pointers and summaries in the requests
    of a wrapped client call them by these names. Without `session_id`, they read the session in which the model asked for
    them, known by the id of its call. A call that no reply contained is read from the session of the running call, if no
    other session had a call in this task or main thread. Where neither is certain, they read nothing.

    Raises:
        ConfigError: `manager` is not a manager, or the id is not a non-empty string.
    """

    def __init__(self, manager: CompactManager, session_id: str | None = None, *, prefix: str = "") -> None:
        check_manager(manager, "RecallTools")
        self.prompt = prompt_segment(prefix)
        """Text for the agent's system prompt: what happens to its context, and how these tools get things back."""
        self._manager, self._session_id, self._prefix = manager, session_id, prefix
        self._tools_of = lru_cache(maxsize=_REMEMBERED)(manager.recall_tools)
        self._tools = {f"{prefix}{name}": tool for name, tool in manager.recall_tools(session_id).items()}
        self._described = [replace(tool, name=name) for name, tool in self._tools.items()]

    @property
    def chat(self) -> list[dict[str, Any]]:
        """Schemas for OpenAI's chat completions."""
        return [tool.openai() for tool in self._described]

    @property
    def responses(self) -> list[dict[str, Any]]:
        """Schemas for OpenAI's Responses."""
        return [tool.responses() for tool in self._described]

    @property
    def anthropic(self) -> list[dict[str, Any]]:
        """Schemas for Anthropic's messages."""
        return [tool.anthropic() for tool in self._described]

    @property
    def gemini(self) -> list[dict[str, Any]]:
        """The tools for Google's Gemini API: one tool with a declaration for each."""
        described = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
            for tool in self._described
        ]
        return [{"functionDeclarations": described}]

    @property
    def converse(self) -> list[dict[str, Any]]:
        """The tools for Bedrock's `toolConfig`."""
        return [
            {
                "toolSpec": {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": {"json": tool.schema},
                }
            }
            for tool in self._described
        ]

    def answers(self, reply: Any) -> list[dict[str, Any]]:
        """Return the answers to a reply's calls of these tools, for the next request. Other calls are left to the host.

        The answers are messages for chat completions, items for Responses, and blocks or parts of the next user message
        for Anthropic, Converse and Gemini. `reply` is the client's reply, its message or its output, as an object or as a dict. Never raises
        because of what the model wrote.
        """
        return [
            _to_result(dialect, call, self._answer(call))
            for dialect, item in _messages_of(reply)
            for call in get(dialect).read(item).calls
            if call.name in self._tools
        ]

    def _answer(self, call: ToolCall) -> str:
        name = call.name.removeprefix(self._prefix)
        session_id = self._session_id or self._manager.resolver.find_asked(call.id)
        if session_id is None:
            return no_session(name)
        named = {f"{self._prefix}{plain}": tool for plain, tool in self._tools_of(session_id).items()}
        return run(named, call.name, call.arguments)


RecoveryTools = RecallTools
"""The former name of `RecallTools`."""


def _messages_of(reply: Any) -> Iterable[tuple[str, Any]]:
    """Return the model's messages or items in a reply, each with its dialect."""
    if isinstance(reply, list | tuple):
        return [("responses", item) for item in reply]
    data: Mapping[str, Any] = plain(reply)
    if "choices" in data:
        return [("chat", choice["message"]) for choice in data["choices"]]
    if isinstance(data.get("output"), list):
        return [("responses", item) for item in data["output"]]
    if "candidates" in data:
        candidates = data["candidates"] or ()
        return [("gemini", candidate["content"]) for candidate in candidates if candidate.get("content")]
    if isinstance(data.get("output"), Mapping) and "message" in data["output"]:
        return [("converse", data["output"]["message"])]
    if isinstance(data.get("parts"), list):
        return [("gemini", data)]
    if _is_converse(data):
        return [("converse", data)]
    return [("anthropic" if isinstance(data.get("content"), list) else "chat", data)]


def _is_converse(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("role"), str) and get("converse").claim(data) == 2


def _to_result(dialect: str, call: ToolCall, text: str) -> dict[str, Any]:
    if dialect == "gemini":
        own = {"id": call.id} if call.id else {}
        return {"functionResponse": {**own, "name": call.name, "response": {"output": text}}}
    if dialect == "converse":
        return {"toolResult": {"toolUseId": call.id, "content": [{"text": text}]}}
    if dialect == "chat":
        return {"role": "tool", "tool_call_id": call.id, "content": text}
    if dialect == "responses":
        return {"type": "function_call_output", "call_id": call.id, "output": text}
    return {"type": "tool_result", "tool_use_id": call.id, "content": text}
