"""Claude Code session files: one JSON line per content block, with side conversations and bookkeeping between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compact.tools.transcripts.conversation import Conversation
from compact.tools.transcripts.records import Record, Records
from compact.tools.transcripts.session import Marker, Session

NAME = "claude_code"

_OWN_KEYS = ("sessionId", "leafUuid", "isSidechain", "isSnapshotUpdate")


def recognises(value: Any) -> bool:
    """Whether a record is a line of such a file."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and any(key in value for key in _OWN_KEYS)
    )


def read(lines: Iterable[Record], records: Records) -> Session:
    """The main conversation of a file, as Anthropic messages.

    Side conversations are left out; the lines of one reply become one message, so do the results of one batch. Text
    that Claude Code wrote in the user's role is marked as injected. A line that should hold a message and does not is
    noted, whether lenient or not: these files are written by a running program.
    """
    talk = Conversation()
    markers: list[Marker] = []
    seen: set[str] = set()
    session_id = model = None
    for line in lines:
        value = line.value
        if not recognises(value):
            records.note(line.line, "it is not a Claude Code record")
            continue
        session_id = session_id or value.get("sessionId")
        uuid = _text(value.get("uuid"))
        if value.get("isSidechain") or uuid in seen:
            continue
        if value["type"] == "system" and value.get("subtype") == "compact_boundary":
            markers.append(Marker(len(talk.messages), "boundary", _text(value.get("content"))))
        if value["type"] not in ("user", "assistant"):
            continue
        problem = _message_problem(value.get("message"))
        if problem:
            records.note(line.line, problem)
            continue
        if value.get("isCompactSummary"):
            markers.append(Marker(len(talk.messages), "summary"))
        if value["type"] == "assistant":
            model = model or value["message"].get("model")
        _add(talk, value)
        if uuid:
            seen.add(uuid)
    return Session(
        id=_text(session_id) or records.name,
        messages=talk.messages,
        format=NAME,
        dialect="anthropic",
        model=_text(model) or None,
        markers=markers,
    )


def _add(talk: Conversation, value: dict[str, Any]) -> None:
    message = value["message"]
    content = message["content"]
    if value["type"] == "assistant":
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        talk.reply(blocks, message.get("id"))
    elif isinstance(content, list) and any(block.get("type") == "tool_result" for block in content):
        talk.results(content)
    else:
        talk.user(content, injected=bool(value.get("isMeta") or value.get("isCompactSummary")))


def _message_problem(message: Any) -> str | None:
    if not isinstance(message, dict):
        return f"its message is a {type(message).__name__}, not an object"
    content = message.get("content")
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "its message has no content"
    if not all(isinstance(block, dict) for block in content):
        return "its message's content is not made of blocks"
    return None if content else "its message's content is empty"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
