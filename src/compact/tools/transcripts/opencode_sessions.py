"""opencode sessions: an export, or the session file of its storage with the messages and parts beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from compact.tools.transcripts.chat_messages import (
    call,
    content_of,
    data_block,
    injected,
    reply,
    result,
    text_block,
)
from compact.tools.transcripts.conversation import text_or_empty
from compact.tools.transcripts.recorded_session import Marker, RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile, describe, fail, read_whole

BOOKKEEPING = frozenset({"step-finish", "snapshot", "patch", "agent", "retry"})
"""Parts that are not sent to the model."""
_HINT = "Name the session's file, storage/session/<project>/<session>.json, or what `opencode export` writes"


def recognises(value: Any) -> bool:
    """Whether a value is an export, its list of messages, or a file of the storage."""
    messages = value.get("messages") if isinstance(value, dict) else value
    if isinstance(messages, list):
        return bool(messages) and all(
            isinstance(each, dict) and isinstance(each.get("info"), dict) and "parts" in each
            for each in messages
        )
    return isinstance(value, dict) and (_is_session(value) or _is_piece(value))


def read(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a session as OpenAI chat messages. A call and its result are one part there, and two messages here."""
    value = line.value
    if isinstance(value, dict) and _is_piece(value):
        what = "a part of a message" if "messageID" in value else "one message, without its parts"
        fail(file.path, f"it is {what} of an opencode session", hint=_HINT)
    info: dict[str, Any] = {}
    if isinstance(value, list):
        messages = value
    elif "messages" in value:
        head = value.get("info")
        info, messages = head if isinstance(head, dict) else {}, value["messages"]
    else:
        info, messages = value, list(_stored(value, file))
    talk = _Talk(file, line.line)
    for message in messages:
        talk.add(message["info"], message["parts"])
    yield RecordedSession(
        id=text_or_empty(info.get("id")) or name,
        messages=talk.messages,
        format="opencode",
        dialect="chat",
        model=talk.model or None,
        markers=talk.markers,
    )


class _Talk:
    """Messages in the making."""

    def __init__(self, file: TranscriptFile, line: int) -> None:
        self.messages: list[dict[str, Any]] = []
        self.markers: list[Marker] = []
        self.model = ""
        self._file = file
        self._line = line

    def add(self, info: dict[str, Any], parts: Any) -> None:
        """Add one message of a person, or of the model."""
        found = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        role = info.get("role")
        if role == "user":
            self._user(found)
        elif role == "assistant":
            self.model = text_or_empty(info.get("modelID")) or self.model
            if info.get("summary") is True:
                self.markers.append(Marker(len(self.messages), "summary"))
            for step in _steps(found):
                self._step(step)
        else:
            self._file.note(self._line, f"messages of role {role!r:.40} are not known")

    def _user(self, parts: Iterable[dict[str, Any]]) -> None:
        said: list[dict[str, Any]] = []
        added: list[dict[str, Any]] = []
        for part in parts:
            kind = part.get("type")
            if kind == "text" and part.get("ignored") is True:
                self._file.leave_out("ignored text")
            elif kind == "text":
                block = text_block(text_or_empty(part.get("text")))
                (added if part.get("synthetic") is True else said).append(block)
            elif kind == "file":
                said.append(_file_block(part))
            elif kind == "compaction":
                self.markers.append(Marker(len(self.messages), "boundary"))
                self._file.leave_out("compaction")
            elif kind == "subtask":
                said.append(text_block(text_or_empty(part.get("prompt"))))
            else:
                self._other(part)
        if said:
            self.messages.append({"role": "user", "content": content_of(said)})
        if added:
            self.messages.append(injected({"role": "user", "content": content_of(added)}))

    def _step(self, parts: Iterable[dict[str, Any]]) -> None:
        """Add one reply of the model, then the results of its calls."""
        said: list[str] = []
        thought: list[str] = []
        calls: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        files: list[dict[str, Any]] = []
        for part in parts:
            kind, text = part.get("type"), text_or_empty(part.get("text"))
            if kind == "text":
                said.append(text)
            elif kind == "reasoning":
                thought.append(text)
            elif kind == "file":
                files.append(_file_block(part))
            elif kind == "tool" and isinstance(part.get("state"), dict):
                call_id, state = text_or_empty(part.get("callID")), part["state"]
                calls.append(call(call_id, text_or_empty(part.get("tool")), state.get("input")))
                results += _result(call_id, state)
            else:
                self._other(part)
        text = "\n".join(filter(None, said))
        content = [*([text_block(text)] if text else []), *files] if files else text
        if content or calls or thought:
            self.messages.append(reply(content, calls, "\n".join(filter(None, thought))))
            self.messages += results

    def _other(self, part: dict[str, Any]) -> None:
        kind = text_or_empty(part.get("type"))
        if kind in BOOKKEEPING:
            self._file.leave_out(kind)
        else:
            self._file.note(self._line, f"a part's type {kind!r:.60} is not known")


def _steps(parts: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split a message into the model's replies. One message holds a whole turn in older sessions."""
    step: list[dict[str, Any]] = []
    called = False
    for part in parts:
        kind = part.get("type")
        if kind == "step-start" or (called and kind in ("text", "reasoning")):
            yield step
            step, called = [], False
        if kind != "step-start":
            step.append(part)
        called = called or kind == "tool"
    yield step


def _result(call_id: str, state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The result of a call. One that was pending or running has none."""
    if state.get("status") == "error":
        yield result(call_id, text_or_empty(state.get("error")))
    elif state.get("status") == "completed":
        output = text_or_empty(state.get("output"))
        attached = state.get("attachments")
        files = (
            [_file_block(each) for each in attached if isinstance(each, dict)]
            if isinstance(attached, list)
            else []
        )
        yield result(call_id, [text_block(output), *files] if files else output)


def _file_block(part: dict[str, Any]) -> dict[str, Any]:
    name = text_or_empty(part.get("filename"))
    return data_block(text_or_empty(part.get("mime")), text_or_empty(part.get("url")), name or None)


def _stored(session: dict[str, Any], file: TranscriptFile) -> Iterator[dict[str, Any]]:
    """Read the messages and parts that a storage keeps in folders beside the session's file."""
    storage = file.path.resolve().parent.parent.parent
    folder = storage / "message" / session["id"]
    if not folder.is_dir():
        fail(file.path, f"it is the head of an opencode session, and there is no {folder}", hint=_HINT)
    for path in sorted(folder.glob("*.json")):
        info = _json(path)
        name = info.get("id")
        if not isinstance(name, str) or Path(name).name != name:
            fail(path, "it is not a message of opencode: its id is not a name")
        yield {
            "info": info,
            "parts": [_json(each) for each in sorted((storage / "part" / name).glob("*.json"))],
        }


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_whole(path))
    except (ValueError, RecursionError) as error:
        fail(path, describe(error))
    return found if isinstance(found, dict) else _refuse(path)


def _refuse(path: Path) -> NoReturn:
    fail(path, "it is not a file of opencode's storage: it is not an object")


def _is_session(value: dict[str, Any]) -> bool:
    is_head = isinstance(value.get("id"), str) and value["id"].startswith("ses_") and "time" in value
    return is_head and Path(value["id"]).name == value["id"] and "messages" not in value


def _is_piece(value: dict[str, Any]) -> bool:
    return isinstance(value.get("sessionID"), str) and text_or_empty(value.get("id")).startswith(
        ("msg_", "prt_")
    )
