"""Claude Code session files: one JSON line per content block, mixed with side conversations and bookkeeping.

What `claude -p --output-format stream-json` prints has nearly the same lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compact.tools.transcripts.conversation import Conversation, as_blocks, message_problem, text_or_empty
from compact.tools.transcripts.model_calls import seconds_of
from compact.tools.transcripts.recorded_session import Marker, RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile

BOOKKEEPING = frozenset(
    {
        "agent-name",
        "ai-title",
        "attachment",
        "custom-title",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "rate_limit_event",
        "result",
        "stream_event",
        "summary",
        "system",
        "tag",
        "worktree-state",
    }
)
"""The types of lines that are not messages."""
_SPEAKERS = ("user", "assistant")
_STREAMED = frozenset({*_SPEAKERS, "system", "result", "stream_event", "rate_limit_event"})
_OWN_KEYS = ("sessionId", "leafUuid", "isSidechain", "isSnapshotUpdate")


def recognises(value: Any) -> bool:
    """Whether a value is a line of such a file."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return any(key in value for key in _OWN_KEYS) or ("session_id" in value and value["type"] in _STREAMED)


def read(lines: Iterator[JsonLine], file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read the main conversation of a file as Anthropic messages.

    Side conversations are left out, unless the file has nothing else: then it is the transcript of a subagent. The lines
    of one reply become one message, and so do the results of one batch. Text that Claude Code wrote in the user's role is
    marked as injected. A line without the message that it should have is skipped even if not lenient, because a running
    program may still be writing the file.
    """
    found = []
    for line in lines:
        if recognises(line.value):
            found.append(line)
        else:
            file.note(line.line, "it is not a Claude Code record")
    spoken = [line.value for line in found if line.value["type"] in _SPEAKERS]
    is_side = bool(spoken) and all(map(_is_side, spoken))
    names = ("agentId", "sessionId", "session_id") if is_side else ("sessionId", "session_id")
    ids = (text_or_empty(line.value.get(name)) for name in names for line in found)
    talk, markers, model, times = _read_all(found, is_side, file)
    yield RecordedSession(
        id=next(filter(None, ids), file.name),
        messages=talk.messages,
        format="claude_code",
        dialect="anthropic",
        model=model or None,
        times=times,
        markers=markers,
    )


def _read_all(
    lines: Sequence[JsonLine], is_side: bool, file: TranscriptFile
) -> tuple[Conversation, list[Marker], str, list[float | None]]:
    talk = Conversation()
    times: list[float | None] = []
    markers: list[Marker] = []
    seen: set[str] = set()
    model = ""
    for line in lines:
        value = line.value
        uuid = text_or_empty(value.get("uuid"))
        kind = value["type"]
        if _is_side(value) and not is_side:
            file.leave_out("line of a side conversation")
            continue
        if uuid in seen:
            file.leave_out("repeated line")
            continue
        if kind == "system" and value.get("subtype") == "compact_boundary":
            markers.append(Marker(len(talk.messages), "boundary", text_or_empty(value.get("content"))))
        if kind in BOOKKEEPING:
            file.leave_out(kind)
            continue
        problem = _problem(value)
        if problem:
            file.note(line.line, problem)
            continue
        if value.get("isCompactSummary"):
            markers.append(Marker(len(talk.messages), "summary"))
        if kind == "assistant":
            model = model or text_or_empty(value["message"].get("model"))
        _add(talk, value)
        if len(times) < len(talk.messages):
            times.append(seconds_of(value.get("timestamp")))
        if uuid:
            seen.add(uuid)
    return talk, markers, model, times


def _is_side(value: dict[str, Any]) -> bool:
    """Whether a line belongs to a subagent."""
    return bool(value.get("isSidechain") or value.get("parent_tool_use_id"))


def _problem(value: dict[str, Any]) -> str | None:
    """Why a line has no message to add; None if it has one."""
    if value["type"] not in _SPEAKERS:
        return f"its type {value['type']!r:.60} is not known"
    problem = message_problem(value.get("message"))
    if problem is None and value["message"]["content"] == []:
        return "its message's content is empty"
    return problem


def _add(talk: Conversation, value: dict[str, Any]) -> None:
    message = value["message"]
    content = message["content"]
    if value["type"] == "assistant":
        talk.reply(as_blocks(content), message.get("id"))
    elif isinstance(content, list) and any(block.get("type") == "tool_result" for block in content):
        talk.results(content)
    else:
        talk.user(content, injected=bool(value.get("isMeta") or value.get("isCompactSummary")))
