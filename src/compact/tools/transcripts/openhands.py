"""OpenHands outputs: one JSON line per run, with its history as a list of actions and observations."""

from __future__ import annotations

from typing import Any

from compact.tools.transcripts.conversation import chat_message
from compact.tools.transcripts.recorded_session import RecordedSession


def recognises(value: Any) -> bool:
    """Whether a value is such a run."""
    if not isinstance(value, dict) or not isinstance(value.get("history"), list):
        return False
    return any(
        isinstance(event, dict) and ("action" in event or "observation" in event)
        for event in value["history"]
    )


def read(value: dict[str, Any], name: str) -> RecordedSession:
    """Read a run as OpenAI chat messages: an action with a call is a reply, its observation the result."""
    messages: list[dict[str, Any]] = []
    tools = None
    last_reply = None
    for event in value["history"]:
        if not isinstance(event, dict):
            continue
        args = _object(event.get("args"))
        call = event.get("tool_call_metadata")
        if event.get("action") == "system":
            messages.append({"role": "system", "content": args.get("content") or event.get("message") or ""})
            tools = args["tools"] if isinstance(args.get("tools"), list) else tools
        elif isinstance(call, dict) and "observation" in event:
            content = str(event.get("content") or "")
            messages.append({"role": "tool", "tool_call_id": call.get("tool_call_id"), "content": content})
        elif isinstance(call, dict) and "action" in event:
            response = _object(call.get("model_response"))
            # Each call of a batch is a separate event that repeats the reply.
            if response.get("id") is None or response.get("id") != last_reply:
                messages.append(_reply(response))
            last_reply = response.get("id")
        elif event.get("action") == "message":
            role = "user" if event.get("source") == "user" else "assistant"
            messages.append({"role": role, "content": args.get("content") or event.get("message") or ""})
    session_id = str(value.get("instance_id") or name)
    return RecordedSession(id=session_id, messages=messages, format="openhands", dialect="chat", tools=tools)


def _reply(response: dict[str, Any]) -> dict[str, Any]:
    choices = response.get("choices")
    choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
    return chat_message("assistant", _object(choice.get("message")))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
