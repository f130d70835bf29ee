"""Gemini contents, `{"role", "parts"}`: lists and requests as they are, and programs' records of them as chat messages.

Field names may be in camel or in snake case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from compact.messages import to_json
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
from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile, in_words

_HOST_TEXTS = ("<session_context>", "<hook_context>")
_MODEL = "model"
_ROLES = ("user", _MODEL, "function")


def recognises(value: Any) -> bool:
    """Whether a value is a list of contents, or a request with one."""
    contents = value.get("contents") if isinstance(value, dict) else value
    return isinstance(contents, list) and any(map(is_content, contents)) and not any(map(_is_other, contents))


def is_content(value: Any) -> bool:
    """Whether a value is one content. Its parts have no `type`; those of other formats do."""
    if not isinstance(value, dict) or "content" in value or not isinstance(value.get("parts"), list):
        return False
    return (
        not any(isinstance(part, dict) and "type" in part for part in value["parts"]) and "info" not in value
    )


def recognises_line(value: Any) -> bool:
    """Whether a value is one content of a file that has one per line."""
    return is_content(value) and bool(value["parts"]) and value.get("role") in _ROLES


def read_lines(lines: Iterator[JsonLine], file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a file with one content per line."""
    contents = []
    for line in lines:
        if is_content(line.value):
            contents.append(line.value)
        else:
            file.reject(line.line, f"it is not a Gemini content: it is {in_words(line.value)}")
    yield RecordedSession(id=file.name, messages=contents, format="gemini", dialect="gemini")


def read(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a list of contents, or a request with one."""
    value = line.value if isinstance(line.value, dict) else {"contents": line.value}
    prompt = field(value, "systemInstruction")
    parts = parts_of(prompt.get("parts") if isinstance(prompt, dict) else prompt)
    texts = [text_or_empty(each.get("text") if isinstance(each, dict) else each) for each in parts]
    tools = value.get("tools")
    contents = []
    for content in value["contents"]:
        if is_content(content):
            contents.append(content)
        else:
            file.note(line.line, f"an entry is not a Gemini content: it is {in_words(content)}")
    yield RecordedSession(
        id=text_or_empty(value.get("id")) or name,
        messages=contents,
        format="gemini",
        dialect="gemini",
        system="\n".join(texts) or None,
        tools=tools if isinstance(tools, list) else None,
        model=text_or_empty(value.get("model")).removeprefix("models/") or None,
    )


class Contents:
    """Turns contents into messages. Calls without an id get one, and answers find their call by its name."""

    def __init__(self, file: TranscriptFile, line: int) -> None:
        self.messages: list[dict[str, Any]] = []
        self._file = file
        self._line = line
        self._open: list[tuple[str, str]] = []
        self._answered: set[str] = set()
        self._calls = 0

    def read(self, contents: Iterable[Any], line: int | None = None) -> list[dict[str, Any]]:
        """Read contents in their order, those of another line by its number, and return all messages so far."""
        self._line = self._line if line is None else line
        for content in contents:
            if not isinstance(content, dict):
                self._file.note(self._line, f"a content is a {type(content).__name__}, not an object")
            elif content.get("role") == _MODEL:
                self.add_reply(parts_of(content.get("parts")))
            else:
                self.add_user(parts_of(content.get("parts")))
        return self.messages

    def add_reply(self, parts: Iterable[Any]) -> None:
        """Add what the model said."""
        said: list[str] = []
        thought: list[str] = []
        calls: list[dict[str, Any]] = []
        others: list[dict[str, Any]] = []
        for part in self._readable(parts):
            made = field(part, "functionCall")
            if isinstance(made, dict):
                self._calls += 1
                name = text_or_empty(made.get("name"))
                call_id = text_or_empty(made.get("id")) or f"call_{self._calls}"
                self._open.append((call_id, name))
                calls.append(call(call_id, name, made.get("args")))
            elif part.get("thought") is True:
                thought.append(text_or_empty(part.get("text")))
            elif isinstance(part.get("text"), str):
                said.append(part["text"])
            else:
                others += self._blocks([part])
        text = "".join(said)
        content = [*([text_block(text)] if text else []), *others] if others else text
        if content or calls or thought:
            self.messages.append(reply(content, calls, "\n".join(filter(None, thought))))

    def add_user(self, parts: Iterable[Any]) -> None:
        """Add the results of calls, then what the user said."""
        rest = []
        for part in self._readable(parts):
            answer = field(part, "functionResponse")
            if isinstance(answer, dict):
                self.add_result(answer)
            else:
                rest.append(part)
        blocks = self._blocks(rest)
        if blocks:
            message = {"role": "user", "content": content_of(blocks)}
            text = text_or_empty(blocks[0].get("text")).lstrip()
            self.messages.append(injected(message) if text.startswith(_HOST_TEXTS) else message)

    def add_result(self, answer: dict[str, Any]) -> None:
        """Add the result of a call, unless the call has one already."""
        name, call_id = text_or_empty(answer.get("name")), text_or_empty(answer.get("id"))
        if not call_id:
            same = (found for found, called in self._open if called == name)
            call_id = next(same, f"call_{self._calls + 1}")
        if call_id in self._answered:
            self._file.leave_out("repeated result")
            return
        self._answered.add(call_id)
        self._open = [each for each in self._open if each[0] != call_id]
        text = _response_text(answer.get("response"))
        blocks = [text_block(text)] if text else []
        blocks += self._blocks(self._readable(parts_of(answer.get("parts"))))
        self.messages.append(result(call_id, content_of(blocks) if blocks else ""))

    def _readable(self, parts: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for part in parts:
            if isinstance(part, str):
                yield {"text": part}
            elif isinstance(part, dict):
                if field(part, "thoughtSignature") is not None:
                    self._file.leave_out("thought signature")
                yield part
            else:
                self._file.note(self._line, f"a part is a {type(part).__name__}, not an object")

    def _blocks(self, parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        found = []
        for part in parts:
            inline, stored = field(part, "inlineData"), field(part, "fileData")
            code, output = field(part, "executableCode"), field(part, "codeExecutionResult")
            if isinstance(part.get("text"), str):
                found.append(text_block(part["text"]))
            elif isinstance(inline, dict):
                mime, data = text_or_empty(field(inline, "mimeType")), text_or_empty(inline.get("data"))
                found.append(data_block(mime, data))
            elif isinstance(stored, dict):
                mime, uri = text_or_empty(field(stored, "mimeType")), text_or_empty(field(stored, "fileUri"))
                found.append(data_block(mime, uri))
            elif isinstance(code, dict):
                language = text_or_empty(code.get("language")).lower()
                found.append(text_block(f"```{language}\n{text_or_empty(code.get('code'))}\n```"))
            elif isinstance(output, dict):
                said = text_or_empty(output.get("output")), text_or_empty(output.get("outcome"))
                found.append(text_block("\n".join(filter(None, said))))
            elif part.keys() - {"thoughtSignature", "thought_signature"}:
                keys = ", ".join(sorted(map(str, part))[:8])
                self._file.note(self._line, f"a part of it is not known (keys: {keys})")
        return found


def parts_of(content: Any) -> list[Any]:
    """Parts as a list. They may be a list, one part, or plain text."""
    if content is None or content == "":
        return []
    return content if isinstance(content, list) else [content]


def field(data: dict[str, Any], name: str) -> Any:
    """A field by its name in camel case, or by the same in snake case."""
    snake = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)
    return data.get(name, data.get(snake))


def _response_text(response: Any) -> str:
    """The text of a function's response: its only field where that is text, else all of it as JSON."""
    if isinstance(response, dict) and len(response) == 1:
        (only,) = response.values()
        if isinstance(only, str):
            return only
    return response if isinstance(response, str) else "" if response is None else to_json(response)


def _is_other(value: Any) -> bool:
    return isinstance(value, dict) and "content" in value
