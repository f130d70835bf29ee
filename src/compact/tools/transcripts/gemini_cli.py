"""Gemini CLI files: recorded sessions (JSON, and JSON lines), chat checkpoints, and the log of prompts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from compact.tools.transcripts.conversation import text_or_empty
from compact.tools.transcripts.gemini_contents import Contents, field, is_content, parts_of
from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile

NOTICES = ("info", "error", "warning")
"""Records that only the interface shows."""


def recognises(value: Any) -> bool:
    """Whether a value is the first line of a recorded session in JSON lines."""
    return _is_header(value) and "messages" not in value


def recognises_record(value: Any) -> bool:
    """Whether a value is a whole file: a recorded session, a checkpoint, or the log of prompts."""
    return _is_header(value) or _checkpoint(value) is not None or _is_log(value)


def read(lines: Iterator[JsonLine], file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a recorded session in JSON lines. A record replaces an earlier one of its id; a rewind removes the newest."""
    header: dict[str, Any] = {}
    records: dict[str, JsonLine] = {}
    for line in lines:
        value = line.value
        if not isinstance(value, dict):
            file.reject(line.line, "it is not a Gemini CLI record")
        elif isinstance(value.get("$rewindTo"), str):
            _rewind(records, value["$rewindTo"], file)
        elif isinstance(value.get("$set"), dict):
            file.leave_out("$set")
            if isinstance(value["$set"].get("messages"), list):
                file.leave_out("replaced record", len(records))
                records = _by_id(value["$set"]["messages"], line.line, file)
        elif isinstance(value.get("id"), str):
            if value["id"] in records:
                file.leave_out("earlier state of a record")
            records[value["id"]] = line
        elif _is_header(value):
            header |= value
            records |= _by_id(value.get("messages"), line.line, file)
        else:
            keys = ", ".join(sorted(map(str, value))[:8])
            file.note(line.line, f"it is not a Gemini CLI record (keys: {keys})")
    yield _session(text_or_empty(header.get("sessionId")) or file.name, records.values(), file)


def read_record(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a whole file of any kind."""
    value = line.value
    if _is_header(value):
        records = _by_id(value.get("messages"), line.line, file)
        yield _session(text_or_empty(value.get("sessionId")) or name, records.values(), file)
    elif isinstance(value, list):
        yield from _prompts(value, file)
    else:
        messages = Contents(file, line.line).read(_checkpoint(value) or [])
        yield RecordedSession(id=name, messages=messages, format="gemini", dialect="chat")


def _session(name: str, records: Iterable[JsonLine], file: TranscriptFile) -> RecordedSession:
    found = Contents(file, 0)
    model = ""
    for record in records:
        value = record.value
        kind, parts = text_or_empty(value.get("type")), parts_of(value.get("content"))
        if kind == "user":
            found.add_user(parts)
        elif kind == "gemini":
            model = text_or_empty(value.get("model")) or model
            _add_reply(found, value, parts)
        elif kind in NOTICES:
            file.leave_out(kind)
        else:
            file.note(record.line, f"its type {value.get('type')!r:.60} is not known")
    return RecordedSession(
        id=name, messages=found.messages, format="gemini", dialect="chat", model=model or None
    )


def _add_reply(found: Contents, value: dict[str, Any], parts: list[Any]) -> None:
    """Add a reply and the results of its calls. Older records list thoughts and calls beside the content."""
    calls = _objects(value.get("toolCalls"))
    held = [part for part in parts if isinstance(part, dict)]
    if not any(part.get("thought") is True for part in held):
        thoughts = _objects(value.get("thoughts"))
        parts = [*({"text": _thought(each), "thought": True} for each in thoughts), *parts]
    known = {
        text_or_empty(made.get("id"))
        for part in held
        if isinstance(made := field(part, "functionCall"), dict)
    }
    parts = [
        *parts,
        *({"functionCall": each} for each in calls if text_or_empty(each.get("id")) not in known),
    ]
    found.add_reply(parts)
    for each in calls:
        answers = parts_of(each.get("result"))
        named = [part for part in answers if isinstance(part, dict) and field(part, "functionResponse")]
        if named:
            found.add_user(answers)
        elif answers:
            found.add_result(
                {"id": each.get("id"), "name": each.get("name"), "parts": answers, "response": ""}
            )


def _thought(each: dict[str, Any]) -> str:
    subject, description = text_or_empty(each.get("subject")), text_or_empty(each.get("description"))
    return f"**{subject}** {description}" if subject else description


def _rewind(records: dict[str, JsonLine], target: str, file: TranscriptFile) -> None:
    """Remove a record and all that follow it; all of them if there is no such record."""
    names = list(records)
    gone = names[names.index(target) :] if target in records else names
    file.leave_out("rewound record", len(gone))
    for name in gone:
        del records[name]


def _by_id(messages: Any, line: int, file: TranscriptFile) -> dict[str, JsonLine]:
    found: dict[str, JsonLine] = {}
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict):
            found[text_or_empty(message.get("id")) or f"#{place}"] = JsonLine(line, message)
        else:
            file.note(line, f"a message is a {type(message).__name__}, not an object")
    return found


def _prompts(entries: list[Any], file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read the log of prompts: what the user typed, by session. It has no replies."""
    sessions: dict[str, list[Any]] = {}
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("message"), str) and entry.get("type") == "user":
            said = {"role": "user", "content": entry["message"]}
            sessions.setdefault(text_or_empty(entry.get("sessionId")) or file.name, []).append(said)
        else:
            file.note(1, "an entry of it is not a prompt")
    for name, messages in sessions.items():
        yield RecordedSession(id=name, messages=messages, format="gemini", dialect="chat")


def _is_header(value: Any) -> bool:
    return isinstance(value, dict) and "projectHash" in value and "sessionId" in value


def _is_log(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(entry, dict) and {"sessionId", "messageId", "message"} <= entry.keys()
            for entry in value
        )
    )


def _checkpoint(value: Any) -> list[Any] | None:
    """The contents of a checkpoint: of a chat, or of the moment before a tool changed files."""
    if not isinstance(value, dict):
        return None
    for key in ("clientHistory", "history"):
        contents = value.get(key)
        if isinstance(contents, list) and any(map(is_content, contents)):
            return contents
    return None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
