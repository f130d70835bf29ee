"""SWE-agent trajectories: a history of chat messages with the agent's own keys among theirs."""

from __future__ import annotations

from typing import Any

from compact.tools.transcripts.conversation import chat_message
from compact.tools.transcripts.recorded_session import RecordedSession


def recognises(value: Any) -> bool:
    """Whether a value is such a trajectory."""
    return isinstance(value, dict) and isinstance(value.get("history"), list) and "trajectory" in value


def read(value: dict[str, Any], name: str) -> RecordedSession:
    """Read the history as OpenAI chat messages. A result that names several calls answers the first."""
    messages = [_message(entry) if isinstance(entry, dict) else entry for entry in value["history"]]
    session_id = value.get("instance_id") or name
    return RecordedSession(id=str(session_id), messages=messages, format="swe_agent", dialect="chat")


def _message(entry: dict[str, Any]) -> dict[str, Any]:
    message = chat_message(entry.get("role"), entry)
    answered = entry.get("tool_call_ids")
    if message["role"] == "tool" and isinstance(answered, list) and answered:
        message["tool_call_id"] = answered[0]
    return message
