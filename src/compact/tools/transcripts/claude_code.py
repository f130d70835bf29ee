"""Claude Code session files: one JSON line per content block, mixed with side conversations and bookkeeping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compact.tools.transcripts.conversation import Conversation, as_blocks, message_problem, text_or_empty
from compact.tools.transcripts.recorded_session import Marker, RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile

_OWN_KEYS = ("sessionId", "leafUuid", "isSidechain", "isSnapshotUpdate")


def recognises(value: Any) -> bool:
    """Whether a value is a line of such a file."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and any(key in value for key in _OWN_KEYS)
    )


def read(lines: Iterable[JsonLine], file: TranscriptFile) -> RecordedSession:
    """Read the main conversation of a file as Anthropic messages.

    Side conversations are left out. The lines of one reply become one message, and so do the results of one batch. Text
    that Claude Code wrote in the user's role is marked as injected. A line without the message that it should have is
    skipped even if not lenient, because a running program may still be writing the file.
    """
    talk = Conversation()
    markers: list[Marker] = []
    seen: set[str] = set()
    session_id = model = None
    for line in lines:
        value = line.value
        if not recognises(value):
            file.note(line.line, "it is not a Claude Code record")
            continue
        session_id = session_id or value.get("sessionId")
        uuid = text_or_empty(value.get("uuid"))
        if value.get("isSidechain") or uuid in seen:
            continue
        if value["type"] == "system" and value.get("subtype") == "compact_boundary":
            markers.append(Marker(len(talk.messages), "boundary", text_or_empty(value.get("content"))))
        if value["type"] not in ("user", "assistant"):
            continue
        problem = message_problem(value.get("message"))
        if problem is None and value["message"]["content"] == []:
            problem = "its message's content is empty"
        if problem:
            file.note(line.line, problem)
            continue
        if value.get("isCompactSummary"):
            markers.append(Marker(len(talk.messages), "summary"))
        if value["type"] == "assistant":
            model = model or value["message"].get("model")
        _add(talk, value)
        if uuid:
            seen.add(uuid)
    return RecordedSession(
        id=text_or_empty(session_id) or file.name,
        messages=talk.messages,
        format="claude_code",
        dialect="anthropic",
        model=text_or_empty(model) or None,
        markers=markers,
    )


def _add(talk: Conversation, value: dict[str, Any]) -> None:
    message = value["message"]
    content = message["content"]
    if value["type"] == "assistant":
        talk.reply(as_blocks(content), message.get("id"))
    elif isinstance(content, list) and any(block.get("type") == "tool_result" for block in content):
        talk.results(content)
    else:
        talk.user(content, injected=bool(value.get("isMeta") or value.get("isCompactSummary")))
