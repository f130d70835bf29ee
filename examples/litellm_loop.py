"""A plain agent loop on LiteLLM, which supports many providers."""

from __future__ import annotations

import json
from typing import Any

import litellm
import offline_model
from outcome import print_outcome

from compact import CompactConfig, CompactManager
from compact.integrations.litellm import CompactHook

TOOL = {
    "type": "function",
    "function": {
        "name": "read_ticket",
        "description": "Read a support ticket.",
        "parameters": {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
    },
}


def ticket(number: int) -> str:
    return "\n".join(
        f"ticket {number}, note {note}: the customer called again about invoice {note}" for note in range(50)
    )


def main() -> None:
    with offline_model.model(calls=40) as name:
        with CompactManager(CompactConfig(model=name, max_context_tokens=offline_model.WINDOW)) as manager:
            completion = CompactHook(manager)(litellm.completion)
            messages: list[Any] = [
                {"role": "user", "content": "Read tickets 1 to 40. What do they have in common?"}
            ]
            while True:
                message = (
                    completion(model=f"openai/{name}", messages=messages, tools=[TOOL]).choices[0].message
                )
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    break
                for call in message.tool_calls:
                    text = ticket(json.loads(call.function.arguments)["number"])
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
            print(message.content)
        print_outcome(manager)


if __name__ == "__main__":
    main()
