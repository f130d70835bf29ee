"""Cline tasks: `api_conversation_history.json`, Anthropic messages with notes of Cline's beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compact.tools.transcripts.conversation import text_or_empty
from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile, fail

CONVERSATION = "api_conversation_history.json"
_NOTES = ("ts", "modelInfo", "metrics")
_SENT = ("role", "content")


def recognises(value: Any) -> bool:
    """Whether a value is a conversation with Cline's notes, or its list of what the window showed."""
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return False
    if _is_shown(value):
        return True
    return any(any(key in each for key in _NOTES) for each in value) and all(
        each.get("role") in ("user", "assistant") and "content" in each for each in value
    )


def read(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read the conversation as Anthropic messages, without Cline's notes.

    Raises:
        TranscriptError: the file is `ui_messages.json`; says which to name instead.
    """
    if _is_shown(line.value):
        beside = file.path.parent / CONVERSATION
        there = f"Name {beside}" if beside.is_file() else f"Name {CONVERSATION} of the same task"
        fail(file.path, "it is what Cline's window showed, not what was sent to the model", hint=there)
    model = ""
    for message in line.value:
        for key in message.keys() - set(_SENT):
            file.leave_out(f"note {key!s:.40}")
        info = message.get("modelInfo")
        model = (text_or_empty(info.get("modelId")) if isinstance(info, dict) else "") or model
    yield RecordedSession(
        id=file.path.resolve().parent.name if name == CONVERSATION.removesuffix(".json") else name,
        messages=[{key: message[key] for key in _SENT} for message in line.value],
        format="cline",
        dialect="anthropic",
        model=model or None,
    )


def _is_shown(value: list[Any]) -> bool:
    return all("ts" in each and each.get("type") in ("ask", "say") for each in value)
