"""A host for the middleware's tests: a filesystem in a dict, messages as the AI SDK writes them, lists of exact sizes."""

from __future__ import annotations

import re
from typing import Any

from compact.tokens import estimate

MODEL = "gpt-4o"
WINDOW = 128_000


class Files:
    """A host's filesystem, with the tools that its agent has."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.broken = False

    def write_file(self, path: str, content: str) -> str:
        if self.broken:
            raise OSError("no space left")
        self.files[path] = content
        return f"Wrote {path}"

    def read_file(self, path: str) -> str:
        return self.files[path]

    def ls(self, folder: str) -> list[str]:
        return sorted(path for path in self.files if path.startswith(folder))

    def grep(self, pattern: str, folder: str) -> list[str]:
        found = [(path, line) for path in self.ls(folder) for line in self.files[path].splitlines()]
        return [f"{path}: {line}" for path, line in found if re.search(pattern, line)]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def write_file(call_id: str, path: str, content: str) -> list[dict[str, Any]]:
    """A call that writes a file, and its result."""
    arguments = {"path": path, "content": content}
    part = {"type": "tool-call", "toolCallId": call_id, "toolName": "write_file", "args": arguments}
    result = {"type": "tool-result", "toolCallId": call_id, "toolName": "write_file", "result": "ok"}
    return [{"role": "assistant", "content": [part]}, {"role": "tool", "content": [result]}]


def words(count: int, name: str = "w") -> str:
    """Text of about three tokens a word, each word different."""
    return " ".join(f"{name}{n}" for n in range(count))


def of_size(messages: list[Any], tokens: int) -> list[Any]:
    """The messages with one more in front, which brings the request to exactly so many tokens of gpt-4o."""
    filler = user("")
    padded = [filler, *messages]
    missing = tokens - estimate(padded, MODEL).total
    while missing:
        filler["content"] += " a" * missing if missing > 0 else ""
        assert missing > 0
        missing = tokens - estimate(padded, MODEL).total
    return padded
