"""pi session files: a header line, then one line per message. Newer files are trees; the last line's branch counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compact.tools.transcripts.conversation import Conversation, as_blocks, message_problem, text_or_empty
from compact.tools.transcripts.recorded_session import Marker, RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile

BOOKKEEPING = frozenset(
    {"custom", "label", "model_change", "session", "session_info", "thinking_level_change"}
)
"""The types of lines that are not messages."""
_FAILED = ("aborted", "error")


def recognises(value: Any) -> bool:
    """Whether a value is the header, or a message, of such a file."""
    if not isinstance(value, dict):
        return False
    header = value.get("type") == "session" and "id" in value and "timestamp" in value
    return header or (value.get("type") == "message" and isinstance(value.get("message"), dict))


def read(lines: Iterator[JsonLine], file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read the conversation as Anthropic messages. Replies that were aborted before they said anything are skipped."""
    found: list[JsonLine] = []
    for line in lines:
        if isinstance(line.value, dict) and isinstance(line.value.get("type"), str):
            found.append(line)
        else:
            file.reject(line.line, "it is not a pi record")
    talk = Conversation()
    markers: list[Marker] = []
    session_id = model = None
    branch = _branch(found)
    file.leave_out("line of another branch", len(found) - len(branch))
    for line in branch:
        value, kind = line.value, line.value["type"]
        session_id = session_id or (value.get("id") if kind == "session" else None)
        model = value.get("modelId") or model if kind in ("session", "model_change") else model
        if kind in BOOKKEEPING:
            file.leave_out(kind)
        elif kind == "compaction":
            markers.append(Marker(len(talk.messages), "boundary", str(value.get("summary") or "")))
            file.leave_out(kind)
        elif kind in ("branch_summary", "custom_message"):
            said = as_blocks(value.get("summary") or value.get("content") or "")
            talk.user([_block(block) for block in said if isinstance(block, dict)], injected=True)
        elif kind == "message":
            problem = _add(talk, value.get("message"))
            if problem:
                file.note(line.line, problem)
        else:
            file.note(line.line, f"its type {kind!r:.60} is not known")
    yield RecordedSession(
        id=str(session_id or file.name),
        messages=talk.messages,
        format="pi",
        dialect="anthropic",
        model=model if isinstance(model, str) else None,
        markers=markers,
    )


def _branch(found: list[JsonLine]) -> list[JsonLine]:
    """Follow the last line up to the root. Older files have no parents: all lines count, in order."""
    by_id = {text_or_empty(line.value.get("id")): line for line in found if "parentId" in line.value}
    by_id.pop("", None)
    if not by_id:
        return found
    branch: list[JsonLine] = []
    here = text_or_empty(found[-1].value.get("id"))
    while here in by_id:
        line = by_id.pop(here)
        branch.append(line)
        here = text_or_empty(line.value.get("parentId"))
    return [line for line in found if "parentId" not in line.value] + branch[::-1]


def _add(talk: Conversation, message: Any) -> str | None:
    """Add one message. Returns the reason if there is nothing to add."""
    if problem := message_problem(message):
        return problem
    role, blocks = message.get("role"), as_blocks(message["content"])
    blocks = list(map(_block, blocks))
    if role == "user":
        talk.user(blocks)
    elif role == "assistant":
        failed = message.get("stopReason") in _FAILED
        if not blocks:
            return "the reply was aborted before it said anything" if failed else "the reply is empty"
        talk.reply(blocks, meta={"stop_reason": message["stopReason"]} if failed else None)
    elif role == "toolResult":
        result = {"type": "tool_result", "tool_use_id": message.get("toolCallId"), "content": blocks}
        talk.results([{**result, "is_error": True} if message.get("isError") else result])
    else:
        return f"messages of role {role!r} are not read"
    return None


def _block(block: dict[str, Any]) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "toolCall":
        return {
            "type": "tool_use",
            "id": block.get("id"),
            "name": block.get("name"),
            "input": block.get("arguments"),
        }
    if kind == "thinking":
        signature = block.get("thinkingSignature")
        thought = {"type": "thinking", "thinking": block.get("thinking") or ""}
        return {**thought, "signature": signature} if signature else thought
    if kind == "image":
        source = {"type": "base64", "media_type": block.get("mimeType"), "data": block.get("data")}
        return {"type": "image", "source": source}
    return {"type": "text", "text": block["text"]} if kind == "text" and "text" in block else block
