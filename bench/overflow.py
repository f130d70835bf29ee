"""A tool-using session against a real model server that enforces its window. `python -m bench.overflow 50`: 50 turns."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench import Figure
from bench.llama import llama_server
from compact import CompactConfig, CompactManager
from compact.checks import violations
from compact.errors import MissingExtra

Item = dict[str, Any]

WINDOW = 256
"""The server's window. The configuration assumes one that is eight times as large."""
TURNS_PER_WORKER = 2
"""Turns after which another process takes over, which has not learned the window yet."""


@dataclass
class Report:
    """The outcome of a session."""

    turns: int = 0
    failed: int = 0
    overflows: int = 0
    illegal: int = 0
    largest: int = 0
    """The largest request that was answered, in the model's own tokens."""


def bench_real_model() -> Iterator[Figure]:
    """8 turns with tool calls against llama.cpp with a window of 256 tokens, a new worker every 2 turns."""
    report = session(8)
    yield Figure("failed turns", report.failed, "", 0)
    yield Figure("illegal requests", report.illegal, "", 0)
    yield Figure("overflows survived", report.overflows, "", 3, at_least=True)


def session(turns: int) -> Report:
    """Run a session of `turns` turns.

    Raises:
        MissingExtra: the model or its client is not installed.
    """
    try:
        import openai
    except ImportError as problem:
        raise MissingExtra.named("llm", "the overflow benchmark") from problem
    report = Report()
    with llama_server(WINDOW) as address, tempfile.TemporaryDirectory() as root:
        client = openai.OpenAI(api_key="none", base_url=address, max_retries=0)

        def send(messages: Any) -> Any:
            report.illegal += bool(violations(messages, in_flight=False))
            try:
                reply = client.chat.completions.create(
                    model="smollm2", messages=messages, max_tokens=4, temperature=0, seed=1
                )
            except openai.BadRequestError:
                report.overflows += 1
                raise
            report.largest = max(report.largest, reply.usage.prompt_tokens if reply.usage else 0)
            return reply

        history: list[Item] = [
            {"role": "user", "content": "Check the files one by one. Never change a test."}
        ]
        manager = _worker(root)
        for turn in range(turns):
            if turn % TURNS_PER_WORKER == 0:
                manager.close()
                manager = _worker(root)
            history += _tool_use(turn)
            try:
                reply = manager.call("agent", history, send)
            except Exception as problem:
                report.failed += 1
                print(f"turn {turn}: {type(problem).__name__}: {problem}")
                continue
            history.append({"role": "assistant", "content": reply.choices[0].message.content or "-"})
            report.turns += 1
        manager.close()
    return report


def _worker(root: str) -> CompactManager:
    return CompactManager(
        CompactConfig(
            model="smollm2",
            max_context_tokens=8 * WINDOW,
            archive={"adapter": "fs", "root": root},
            # A window this small has no room for what a real session keeps.
            policy={"hard_cap_buffer": 16, "reserve_output_tokens": 8, "keep_recent_turns": 1, "keep_tool_io_pairs": 1},
            summary={"max_tokens": 60},
            offload={"preview_tokens": 40},
            guard={"min_context_tokens": 0, "warn_context_tokens": 0},
        )
    )  # fmt: skip


def _tool_use(turn: int) -> list[Item]:
    """A user message, a call and its result: about 100 tokens."""
    path = f"src/module_{turn}.py"
    call = {"name": "read_file", "arguments": f'{{"path": "{path}"}}'}
    source = "\n".join(f"def check_{turn}_{n}(item):\n    return item.price * {n}" for n in range(3))
    return [
        {"role": "user", "content": f"Now {path}: is anything wrong?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": f"call_{turn}", "content": source},
    ]  # fmt: skip


if __name__ == "__main__":
    print(session(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
