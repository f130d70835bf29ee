"""OpenAI Agents SDK: `ToolOutputTrimmer` shortens the tool outputs of older turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from agents.extensions import ToolOutputTrimmer
from agents.run_config import CallModelData, ModelInputData

from bench.peers import Compaction, Item, Native, Peer
from bench.peers._chat import text_of

_LENGTHS = (32_000, 16_000, 8_000, 4_000, 2_000, 1_000, 500, 250, 120)


class Tool(Peer):
    """Responses items; a call stands beside its message, so one message may become several items."""

    TITLE = "OpenAI Agents ToolOutputTrimmer"
    DISTRIBUTION = "openai-agents"
    IMPORT = "from agents.extensions import ToolOutputTrimmer"
    CALLED = "`RunConfig(call_model_input_filter=ToolOutputTrimmer())`; for retention first `recent_turns=1` and `max_output_chars=` and `preview_chars=` 32,000 to 120"
    BETTER = "one line in an Agents SDK run, no tokenizer and no state; previews say how much was cut"
    DEFAULT_KEEPS_MOST = False

    def load(self, messages: list[Item]) -> Native:
        """See `Peer.load`."""
        return [entry for item in messages for entry in _load(item)]

    def back(self, native: Native) -> list[Item]:
        """See `Peer.back`."""
        found: list[Item] = []
        for entry in native:
            _add(found, entry)
        return found

    def below(self, native: Native) -> Callable[[Native], Any]:
        """See `Peer.below`: it has no threshold, so it works through all outputs every time."""
        return _trimmed(ToolOutputTrimmer())

    def default(self, budget: int) -> Compaction:
        """See `Peer.default`: it knows no budget."""
        return _trimmed(ToolOutputTrimmer())

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`."""
        for length in _LENGTHS:
            yield _trimmed(ToolOutputTrimmer(recent_turns=1, max_output_chars=length, preview_chars=length))


def _trimmed(trimmer: ToolOutputTrimmer) -> Compaction:
    nobody: Any = SimpleNamespace()

    def compact(native: Native) -> Native:
        data: CallModelData[Any] = CallModelData(
            model_data=ModelInputData(input=native, instructions=None), agent=nobody, context=None
        )
        return list(trimmer(data).input)

    return compact


def _load(item: Item) -> Iterator[Item]:
    text = text_of(item)
    if item["role"] == "tool":
        yield {"type": "function_call_output", "call_id": item["tool_call_id"], "output": text}
        return
    calls = item.get("tool_calls") or []
    if text or not calls:
        yield {"role": item["role"], "content": text}
    for call in calls:
        function = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function["arguments"],
        }


def _add(found: list[Item], entry: Item) -> None:
    if entry.get("type") == "function_call_output":
        found.append({"role": "tool", "tool_call_id": entry["call_id"], "content": entry["output"]})
    elif entry.get("type") == "function_call":
        if not found or found[-1]["role"] != "assistant":
            found.append({"role": "assistant", "content": "", "tool_calls": []})
        function = {"name": entry["name"], "arguments": entry["arguments"]}
        call = {"id": entry["call_id"], "type": "function", "function": function}
        found[-1].setdefault("tool_calls", []).append(call)
    else:
        found.append(dict(entry))
