"""A coding assistant in a plain loop: a wrapped OpenAI client, a tool that reads real files, and recall tools.

Inspect the result with `compact archive ls` and `compact archive show`. To watch it live in Ariadne, set ARIADNE_URL (for example
http://localhost:5175).
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import offline_model
from openai import OpenAI
from outcome import print_outcome

from compact import CompactConfig, CompactManager
from compact.integrations.recall import RecoveryTools

SYSTEM = (
    "You are a careful programmer. Read the modules of the project, then say which of them need a docstring."
)
SESSION = "coding-session"


def make_project(folder: Path) -> None:
    """Write the modules that the assistant reads."""
    for number in range(1, 41):
        lines = [f"def step_{number}_{k}(value):\n    return value * {k} + {number}\n" for k in range(30)]
        (folder / f"item-{number}.py").write_text("\n".join(lines))


def read_module(folder: Path, name: str) -> str:
    path = folder / f"{Path(name).stem}.py"
    return (
        path.read_text() if path.is_file() else f"{path.name} does not exist; choose one of item-1 to item-40"
    )


READ_MODULE = {
    "type": "function",
    "function": {
        "name": "read_module",
        "description": "Read the source of a module of the project: item-1 to item-40.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


def configuration(name: str) -> CompactConfig:
    url = os.environ.get("ARIADNE_URL")
    tracing = {"exporters": ["jsonl", "ariadne"], "ariadne_url": url} if url else {"exporters": ["jsonl"]}
    policy = {"strategy": "code_delta"}
    return CompactConfig(model=name, max_context_tokens=offline_model.WINDOW, policy=policy, tracing=tracing)


def work(client: Any, name: str, folder: Path, recovery: RecoveryTools) -> str:
    messages: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Read item-1 to item-40. Never rename a function: others import them."},
    ]
    while True:
        reply = client.chat.completions.create(
            model=name, messages=messages, tools=[READ_MODULE, *recovery.chat]
        )
        message = reply.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return str(message.content)
        messages += recovery.answers(reply)
        for call in message.tool_calls:
            if call.function.name == "read_module":
                source = read_module(folder, json.loads(call.function.arguments)["name"])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": source})


def main() -> None:
    with offline_model.model(calls=40) as name, tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder))
        with CompactManager(configuration(name)) as manager:
            client = manager.wrap(OpenAI(), session_id=SESSION)
            print(work(client, name, Path(folder), RecoveryTools(manager, SESSION)))
        print_outcome(manager)
    print(f"archive: .compact/archive/{SESSION} (compact archive show {SESSION})")


if __name__ == "__main__":
    main()
