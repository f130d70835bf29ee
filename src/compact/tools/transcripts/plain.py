"""Plain formats: a list of messages, a request body, a list of artifacts, one message per line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile

_LISTS = ("messages", "artifacts", "input")


def recognises_session(value: Any) -> bool:
    """Whether a value is a whole session: a list, or an object with a list of messages, artifacts or input items."""
    if isinstance(value, list):
        return True
    if not isinstance(value, dict) or "role" in value:
        return False
    return any(isinstance(value.get(key), list) for key in _LISTS) or (
        isinstance(value.get("input"), str) and "type" not in value
    )


def read_session(value: Any, name: str) -> RecordedSession:
    """Read a value that is a whole session."""
    if isinstance(value, list):
        return RecordedSession(id=name, messages=value, format="messages")
    session_id = str(value.get("id") or value.get("session_id") or name)
    if isinstance(value.get("artifacts"), list):
        return RecordedSession(
            id=session_id, messages=value["artifacts"], format="artifacts", dialect="harness"
        )
    own = "messages" if isinstance(value.get("messages"), list) else "input"
    messages = value[own]
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    tools, model = value.get("tools"), value.get("model")
    return RecordedSession(
        id=session_id,
        messages=messages,
        format="session" if own == "messages" else "responses_request",
        dialect="responses" if own == "input" else None,
        system=value.get("system") if own == "messages" else value.get("instructions"),
        tools=tools if isinstance(tools, list) else None,
        model=model if isinstance(model, str) else None,
    )


def recognises_message(value: Any) -> bool:
    """Whether a value can be a message of some dialect."""
    return isinstance(value, dict) and any(
        isinstance(value.get(key), str) for key in ("role", "type", "kind")
    )


def read_messages(lines: Iterable[JsonLine], file: TranscriptFile) -> RecordedSession:
    """Read a file with one message per line."""
    messages = []
    for line in lines:
        if recognises_message(line.value):
            messages.append(line.value)
        else:
            file.reject(line.line, "it is not a message: it has no role, type or kind")
    return RecordedSession(id=file.name, messages=messages, format="message_lines")
