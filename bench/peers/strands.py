"""Strands Agents: `SlidingWindowConversationManager`, a window of messages, and less of it after each refusal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.types.exceptions import ContextWindowOverflowException

from bench.peers import Compaction, Excluded, Item, Native, Peer, Refused
from bench.peers._chat import arguments_of, text_of
from bench.retention import tokens_in


class Tool(Peer):
    """Its budget is the provider's refusal: as its agent does, we reduce and ask again until the list is accepted."""

    TITLE = "Strands sliding window"
    DISTRIBUTION = "strands-agents"
    IMPORT = "from strands.agent.conversation_manager import SlidingWindowConversationManager"
    CALLED = (
        "`SlidingWindowConversationManager()`: `apply_management`, then `reduce_context` after each refusal; for retention first "
        "with `window_size=1_000_000`, as in the preflight, where nothing has to go"
    )
    BETTER = "a preflight that only compares two lengths; no tokenizer, so any model; nothing to set"
    DEFAULT_KEEPS_MOST = False

    def load(self, messages: list[Item]) -> Native:
        """See `Peer.load`; the system prompt is not one of its messages; it is kept separately, as the first."""
        return [_load(item) for item in messages]

    def back(self, native: Native) -> list[Item]:
        """See `Peer.back`."""
        return [item for message in native for item in _back(message)]

    def below(self, native: Native) -> Callable[[Native], Any]:
        """See `Peer.below`."""
        manager = SlidingWindowConversationManager(window_size=1_000_000)
        return lambda grown: manager.apply_management(SimpleNamespace(messages=grown))

    def default(self, budget: int) -> Compaction:
        """See `Peer.default`."""
        return lambda native: self._reduced(native, SlidingWindowConversationManager(), budget)

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`."""
        wide = SlidingWindowConversationManager(window_size=1_000_000)
        yield lambda native: self._reduced(native, wide, budget)
        yield self.default(budget)

    def _reduced(self, native: Native, manager: SlidingWindowConversationManager, budget: int) -> Native:
        system = [message for message in native if message["role"] == "system"]
        # It changes the messages that it shortens, so it gets copies.
        agent: Any = SimpleNamespace(messages=[dict(m) for m in native if m["role"] != "system"])
        manager.apply_management(agent)
        while not self._fits([*system, *agent.messages], budget):
            try:
                manager.reduce_context(agent, ContextWindowOverflowException("too long"))
            except ContextWindowOverflowException as problem:
                raise Refused from problem
        return [*system, *agent.messages]

    def _fits(self, native: Native, budget: int) -> bool:
        with Excluded(self):
            return tokens_in(self.back(native)) <= budget


def _load(item: Item) -> Item:
    text = text_of(item)
    if item["role"] == "tool":
        result = {"toolUseId": item["tool_call_id"], "content": [{"text": text}], "status": "success"}
        return {"role": "user", "content": [{"toolResult": result}]}
    blocks: list[Item] = [{"text": text}] if text else []
    for call in item.get("tool_calls") or []:
        use = {"toolUseId": call["id"], "name": call["function"]["name"], "input": arguments_of(call)}
        blocks.append({"toolUse": use})
    return {"role": item["role"], "content": blocks}


def _back(message: Item) -> Iterator[Item]:
    results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
    for result in results:
        text = "\n".join(part["text"] for part in result["content"])
        yield {"role": "tool", "tool_call_id": result["toolUseId"], "content": text}
    if results:
        return
    found: Item = {
        "role": message["role"],
        "content": "\n".join(block["text"] for block in message["content"] if "text" in block),
    }
    uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    if uses:
        found["tool_calls"] = [
            {
                "id": use["toolUseId"],
                "type": "function",
                "function": {"name": use["name"], "arguments": json.dumps(use["input"], ensure_ascii=False)},
            }
            for use in uses
        ]
    yield found
