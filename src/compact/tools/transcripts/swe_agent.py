"""SWE-agent trajectories: a history of chat messages with the agent's own keys among theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compact.tools.transcripts.conversation import chat_message
from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile


def recognises(value: Any) -> bool:
    """Whether a value is such a trajectory."""
    return isinstance(value, dict) and isinstance(value.get("history"), list) and "trajectory" in value


def read(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read the history as OpenAI chat messages. A result that names several calls answers the first."""
    value = line.value
    messages = []
    for entry in value["history"]:
        if isinstance(entry, dict) and isinstance(entry.get("role"), str):
            messages.append(_message(entry))
        else:
            file.note(line.line, "an entry of its history is not a message: it has no role")
    session_id = value.get("instance_id") or name
    yield RecordedSession(id=str(session_id), messages=messages, format="swe_agent", dialect="chat")


def _message(entry: dict[str, Any]) -> dict[str, Any]:
    message = chat_message(entry.get("role"), entry)
    answered = entry.get("tool_call_ids")
    if message["role"] == "tool" and isinstance(answered, list) and answered:
        message["tool_call_id"] = answered[0]
    return message
