"""Sessions written as patterns of letters, for tests of where they are cut."""

from __future__ import annotations

from typing import Any

Item = dict[str, Any]

ROLES = {"s": "system", "u": "user", "a": "assistant", "p": "user", "S": "assistant"}


def built(pattern: str) -> list[Item]:
    """Chat messages: s system, u user, a assistant, t assistant with a call, r the result of the oldest open call,
    p a protected user message, S a summary.
    """
    found: list[Item] = []
    waiting: list[str] = []
    for number, kind in enumerate(pattern):
        match kind:
            case "t":
                function = {"name": "read", "arguments": "{}"}
                call = {"id": f"c{number}", "type": "function", "function": function}
                found.append({"role": "assistant", "content": None, "tool_calls": [call]})
                waiting.append(f"c{number}")
            case "r":
                call_id = waiting.pop(0) if waiting else "nobody"
                found.append({"role": "tool", "tool_call_id": call_id, "content": "x"})
            case _:
                marks = {"meta": {"protected": True}} if kind == "p" else {}
                found.append({"role": ROLES[kind], "content": f"{kind}{number}", **marks})
    return found
