"""A plain agent loop with a wrapped Anthropic client."""

from __future__ import annotations

from typing import Any

import offline_model
from anthropic import Anthropic
from outcome import print_outcome

from compact import CompactConfig, CompactManager

TOOL: Any = {
    "name": "read_page",
    "description": "Read a page of the book.",
    "input_schema": {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]},
}


def page(number: int) -> str:
    return "\n".join(
        f"page {number}, line {line}: and so the story went on, word by word" for line in range(60)
    )


def main() -> None:
    with offline_model.model(calls=40, key="ANTHROPIC_API_KEY") as name:
        with CompactManager(CompactConfig(model=name, max_context_tokens=offline_model.WINDOW)) as manager:
            client = manager.wrap(Anthropic())
            messages: list[Any] = [{"role": "user", "content": "Read pages 1 to 40 and tell me how it ends."}]
            while True:
                reply = client.messages.create(model=name, max_tokens=800, messages=messages, tools=[TOOL])
                messages.append({"role": "assistant", "content": reply.content})
                results = [
                    {"type": "tool_result", "tool_use_id": block.id, "content": page(block.input["page"])}
                    for block in reply.content
                    if block.type == "tool_use"
                ]
                if not results:
                    break
                messages.append({"role": "user", "content": results})
            print(reply.content[0].text)
        print_outcome(manager)


if __name__ == "__main__":
    main()
