"""OpenHands outputs: one JSON line per run, with its history as a list of actions and observations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compact.tools.transcripts.conversation import chat_message
from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile, keys_in_words


def recognises(value: Any) -> bool:
    """Whether a value is such a run."""
    if not isinstance(value, dict) or not isinstance(value.get("history"), list):
        return False
    return any(
        isinstance(event, dict) and ("action" in event or "observation" in event)
        for event in value["history"]
    )


def read(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a run as OpenAI chat messages: an action with a call is a reply, its observation the result."""
    value, messages = line.value, list[dict[str, Any]]()
    tools = None
    last_reply = None
    for event in value["history"]:
        if not isinstance(event, dict):
            file.note(line.line, f"an event of it is a {type(event).__name__}, not an object")
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
            else:
                file.leave_out("repeated reply")
            last_reply = response.get("id")
        elif event.get("action") == "message":
            role = "user" if event.get("source") == "user" else "assistant"
            messages.append({"role": role, "content": args.get("content") or event.get("message") or ""})
        elif isinstance(event.get("action"), str) or isinstance(event.get("observation"), str):
            kind = "action" if "action" in event else "observation"
            file.leave_out(f"{kind} {event[kind]!s:.40}")
        else:
            file.note(
                line.line, f"an event of it is neither an action nor an observation: {keys_in_words(event)}"
            )
    session_id = str(value.get("instance_id") or name)
    yield RecordedSession(id=session_id, messages=messages, format="openhands", dialect="chat", tools=tools)


def _reply(response: dict[str, Any]) -> dict[str, Any]:
    choices = response.get("choices")
    choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
    return chat_message("assistant", _object(choice.get("message")))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
