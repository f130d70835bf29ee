"""Where the model was called in a recorded session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from compact.messages import Message


def model_calls(messages: Sequence[Message]) -> list[int]:
    """Find where the model was called: before each reply, and at the end if the last message is not a reply."""
    found = [
        place
        for place in range(1, len(messages))
        if messages[place].role == "assistant" and messages[place - 1].role != "assistant"
    ]
    if messages and messages[-1].role != "assistant":
        found.append(len(messages))
    return found


def seconds_of(text: Any) -> float | None:
    """Read a time such as `2026-01-22T19:57:22.096Z`, in seconds; None if it is none."""
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None
