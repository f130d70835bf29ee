"""A proxy on this machine, in front of one upstream, and the conversations that tests send through it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compact import CompactConfig, CompactManager
from compact.integrations.proxy import ProxyServer

MODEL = "claude-sonnet-5"
KEY = {"x-api-key": "sk-ant-nobodys", "anthropic-version": "2023-06-01"}
TOOLS = [
    {"name": "read", "description": "Read a file.", "input_schema": {"type": "object", "properties": {}}}
]
PATIENT = {"deadline_ms": 60_000}
"""A deadline that no busy machine misses."""


def proxy_config(
    url: str, root: Path | None = None, window: int | None = None, **settings: Any
) -> CompactConfig:
    proxy = {
        "anthropic_url": url,
        "openai_url": url,
        "gemini_url": url,
        **PATIENT,
        **settings.pop("proxy", {}),
    }
    archive = {"adapter": "memory"} if root is None else {"adapter": "fs", "root": str(root)}
    windows = {} if window is None else {"*": window}
    return CompactConfig(archive=archive, windows=windows, proxy=proxy, **settings)


@contextmanager
def proxying(
    url: str, root: Path | None = None, window: int | None = None, **settings: Any
) -> Iterator[ProxyServer]:
    """Run a proxy in front of one upstream. Its manager is `server.manager`."""
    with (
        CompactManager(proxy_config(url, root, window, **settings)) as manager,
        ProxyServer(manager) as server,
    ):
        yield server


def body_of(messages: list[Any], **more: Any) -> bytes:
    """An Anthropic request, written as no serialiser of ours would write it."""
    request = {"model": MODEL, "max_tokens": 64, "tools": TOOLS, **more, "messages": messages}
    return json.dumps(request, indent=1).encode()


def long_talk(turns: int, words: int = 220, asks: str = "Read the next file.") -> list[Any]:
    """A conversation that reads files. It ends with a person's words."""
    found: list[Any] = [{"role": "user", "content": "Find the bug. Never touch tests/."}]
    for n in range(turns):
        call = {
            "type": "tool_use",
            "id": f"toolu_{n:04}",
            "name": "read",
            "input": {"path": f"src/part{n}.py"},
        }
        text = "\n".join(f"value_{n}_{line} = load(part_{n}, {line})" for line in range(words // 8))
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        found += [
            {"role": "assistant", "content": [{"type": "text", "text": f"I look at part {n}."}, call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"Part {n} is fine."},
            {"role": "user", "content": f"{asks} ({n})"},
        ]
    return found
