"""Gemini contents: the roles `user` and `model`, and parts without a type, named in camel case or in snake case.

A call and its response need no id: without one they belong together by name and order. The model's answer may carry thought
signatures. A signed part is never changed, and stays with its message.

The system prompt is a field of the request, not a content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compact.messages.dialects import wire
from compact.messages.dialects.forms import Flaw, Form
from compact.messages.message import (
    GAP,
    Image,
    Message,
    Opaque,
    Part,
    Piece,
    Reasoning,
    Sealed,
    Text,
    ToolCall,
    ToolResult,
    to_json,
)

NAME = "gemini"
EXPECTED = (
    "a Gemini content: {'role': 'user' | 'model', 'parts': parts of text, functionCall, functionResponse, inlineData, "
    "fileData, ...}"
)
ITEMS_ARE_PARTS = False
RESULTS_IN_USER = True
TAKES_PLAIN = False
MODEL_ROLE = "model"

_SNAKE = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
    "toolCall": "tool_call",
    "toolResponse": "tool_response",
    "thoughtSignature": "thought_signature",
    "mimeType": "mime_type",
    "fileUri": "file_uri",
}
"""The names that have two spellings."""
_DATA = ("functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")  # fmt: skip
"""What a part can consist of, beside text."""
_KNOWN = frozenset({"text", "thought", *_SNAKE, *_SNAKE.values()})
_TYPED = frozenset({"type", "part_kind", "block_type", "kind"})
"""What the parts of other formats have."""
_OUTPUT, _ERROR = "output", "error"
"""The fields of a response that Google's documentation names."""


def claim(item: Mapping[str, Any]) -> int:
    """See `Dialect.claim`."""
    role, parts = item.get("role"), item.get("parts")
    if (
        not isinstance(role, str | None)
        or "content" in item
        or "kind" in item
        or item.get("type") is not None
    ):
        return 0
    if not isinstance(parts, list | tuple):
        return 0
    fields = [part if isinstance(part, Mapping) else getattr(part, "__dict__", {}) for part in parts]
    if any(_TYPED & part.keys() for part in fields):
        return 0
    return 2 if any(_KNOWN & part.keys() for part in fields) else 1


def read(item: Any) -> Message:
    """See `Dialect.read`."""
    data = wire.plain(item)
    role = data.get("role")
    if not isinstance(role, str | None):
        raise ValueError(f"its 'role' is {role!r}")
    parts = tuple(map(_read_part, _parts_of(data)))
    found = wire.marks(data)
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].text == GAP:
        found["injected"] = True  # compact wrote it, not a person
    return Message("assistant" if role == MODEL_ROLE else role or "user", parts, origin=item, **found)


def write(message: Message) -> Any:
    """See `Dialect.write`."""
    return wire.write_entry(message, _fill)


def _fill(data: dict[str, Any], message: Message) -> None:
    role = MODEL_ROLE if message.role == "assistant" else message.role
    if data.get("role") != role and (data.get("role") or role != "user" or not data):
        data["role"] = role
    if message.parts or data.get("parts"):
        data["parts"] = list(map(_write_part, message.parts))


def mend(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Flaw]]:
    """See `Dialect.mend`."""
    form = Form(data)
    if data.get("role") == "assistant":
        form.put("role", MODEL_ROLE, "the model's role is called 'model' here", "unknown_role")
    elif data.get("role") == "":
        form.drop("role", "the role is empty")
    parts = data.get("parts")
    if isinstance(parts, str | Mapping):
        form.put("parts", [parts], "the parts are not a list")
    if isinstance(form.data.get("parts"), list | tuple):
        _mend_parts(form)
    return form.data, form.flaws


def _mend_parts(form: Form) -> None:
    parts = [{"text": part} if isinstance(part, str) else wire.plain(part) for part in form.data["parts"]]
    if any(isinstance(part, str) for part in form.data["parts"]):
        form.put("parts", parts, "a bare string stands where a part should", "bare_string")
    said = [part for part in parts if _has_data(part)]
    if len(said) < len(parts):
        form.put("parts", said, "a part holds nothing")
    mended = [_mend_response(_mend_call(_mend_signed(part))) for part in said]
    if any(new is not old for new, old in zip(mended, said, strict=True)):
        why = (
            "a signature stands without a text, or arguments or the response of a function are not an object"
        )
        form.put("parts", mended, why)


def _mend_signed(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part with nothing but a signature, as the provider takes it: beside an empty text."""
    said = {key for key, value in part.items() if value is not None}
    is_alone = said & {*_SIGNATURES} and said <= {*_SIGNATURES, "thought"}
    return {**part, "text": ""} if is_alone else part


def _has_data(part: Mapping[str, Any]) -> bool:
    if isinstance(part.get("text"), str) or _get(part, "thoughtSignature") or not part.keys() <= _KNOWN:
        return True  # a part of the future has data of a name that is not known
    return any(isinstance(_get(part, name), Mapping) for name in _DATA)


def _mend_call(part: Mapping[str, Any]) -> Mapping[str, Any]:
    key, call = _find(part, "functionCall")
    if call is None or isinstance(call.get("args"), Mapping | None) or "args" not in call:
        return part
    parsed = ToolCall("", "", call["args"]).parsed_arguments()
    return part if parsed is None else {**part, key: {**call, "args": parsed}}


def _mend_response(part: Mapping[str, Any]) -> Mapping[str, Any]:
    key, answer = _find(part, "functionResponse")
    if answer is None or isinstance(answer.get("response"), Mapping):
        return part
    given = answer.get("response")
    return {**part, key: {**answer, "response": {} if given is None else {_OUTPUT: given}}}


def pieces(item: Any) -> Iterable[Piece]:
    """See `Dialect.pieces`."""
    data = item if type(item) is dict else wire.plain(item)
    found: list[Piece] = [data.get("role") or ""]
    for part in _parts_of(data):
        _add_part(part, found)
    return found


def _add_part(part: Mapping[str, Any] | str, found: list[Piece]) -> None:
    if isinstance(part, str):
        found.append(part)
        return
    signature = _get(part, "thoughtSignature")
    if signature:
        found.append(Sealed(len(wire.encoded(signature))))
    text = part.get("text")
    if isinstance(text, str):
        found.append(text)
        return
    read_part = _read_part(part)
    if isinstance(read_part, ToolCall):
        found += [read_part.id, read_part.name, read_part.arguments_text]
    elif isinstance(read_part, ToolResult):
        found += [read_part.call_id, read_part.name or ""]
        for inner in read_part.content:
            found += wire.part_pieces(inner)
    elif isinstance(read_part, Opaque):
        own = {key: value for key, value in part.items() if key not in _SIGNATURES}
        found += wire.opaque_pieces(own) if own else []
    else:
        found += wire.part_pieces(read_part)


_SIGNATURES = ("thoughtSignature", "thought_signature")


def _parts_of(data: Mapping[str, Any]) -> list[Mapping[str, Any] | str]:
    """The parts of a content. Raises ValueError if they are not parts, or if it keeps what it says elsewhere."""
    parts = data.get("parts")
    if parts is None or parts == "":
        if data.get("content") is not None or "parts" not in data:
            raise ValueError("it has no 'parts'")
        return []
    if isinstance(parts, str | Mapping):
        parts = [parts]
    if not isinstance(parts, list | tuple):
        raise ValueError(f"its 'parts' is {type(parts).__name__}, not a list")
    found: list[Mapping[str, Any] | str] = []
    for place, part in enumerate(parts):
        try:
            found.append(part if isinstance(part, str) else wire.plain(part))
        except ValueError as problem:
            raise ValueError(f"parts[{place}] is not a part: {problem}") from problem
        if not isinstance(found[-1], str) and _TYPED & found[-1].keys():
            raise ValueError(f"parts[{place}] is a part of another format: it has a type")
    return found


def _read_part(part: Mapping[str, Any] | str) -> Part:
    if isinstance(part, str):
        return Text(part, origin=part)
    signed = bool(_get(part, "thoughtSignature"))
    text = part.get("text")
    if part.get("thought") is True:
        return Reasoning(text if isinstance(text, str) else "", signed=signed, origin=part)
    if isinstance(text, str):
        # A stream ends with an empty text that carries nothing but the signature.
        return (
            Text(text, signed=signed, origin=part)
            if text or not signed
            else Reasoning("", signed=True, origin=part)
        )
    _, call = _find(part, "functionCall")
    if call is not None:
        call_id, arguments = wire.text_at(call, "id"), call.get("args")
        return ToolCall(
            call_id,
            wire.text_at(call, "name"),
            {} if arguments is None else arguments,
            by_position=not call_id,
            signed=signed,
            origin=part,
        )
    _, answer = _find(part, "functionResponse")
    if answer is not None:
        return _read_answer(answer, part)
    return _read_media(part)


def _read_answer(answer: Mapping[str, Any], part: Mapping[str, Any]) -> ToolResult:
    call_id = wire.text_at(answer, "id")
    response = answer.get("response")
    return ToolResult(
        call_id,
        _read_response(answer),
        name=wire.text_at(answer, "name"),
        is_error=isinstance(response, Mapping) and response.keys() == {_ERROR},
        by_position=not call_id,
        origin=part,
    )


def _read_response(answer: Mapping[str, Any]) -> tuple[Part, ...]:
    """What a function said: its only text, else the whole response as JSON; behind it files and pictures."""
    response, parts = answer.get("response"), answer.get("parts")
    found: list[Part] = []
    only = next(iter(response.values())) if isinstance(response, Mapping) and len(response) == 1 else response
    if isinstance(only, str):
        found.append(Text(only))
    elif response:
        found.append(Text(to_json(response)))
    media = parts if isinstance(parts, list | tuple) else ()
    found += [_read_part(wire.plain(each)) for each in media]
    return tuple(found)


def _read_media(part: Mapping[str, Any]) -> Part:
    for key in ("inlineData", "fileData"):
        _, blob = _find(part, key)
        if blob is not None and wire.text_at(blob, _spelling(blob, "mimeType")).startswith("image/"):
            return Image(wire.encoded(blob.get("data") or _get(blob, "fileUri")), origin=part)
    names = [key for key in part if key not in _SIGNATURES]
    return Opaque(str(names[0]) if names else "thought_signature", origin=part)


def _write_part(part: Part) -> Any:
    if isinstance(part, Text):
        before = part.origin
        if isinstance(before, str):
            return part.text
        if isinstance(before, Mapping):
            return before if before.get("text") == part.text else {**before, "text": part.text}
        return {"text": part.text}
    if isinstance(part, ToolCall):
        return _write_call(part)
    if isinstance(part, ToolResult):
        return _write_answer(part)
    if isinstance(part, Image) and part.origin is None:
        return _write_image(part)
    return part.origin


def _write_call(call: ToolCall) -> Any:
    part: Mapping[str, Any] = call.origin if isinstance(call.origin, Mapping) else {}
    key, before = _find(part, "functionCall")
    before = before or {}
    arguments = call.arguments
    if isinstance(arguments, str):
        parsed = call.parsed_arguments()
        arguments = arguments if parsed is None else parsed
    changed = dict(before)
    if call.id != wire.text_at(before, "id"):
        changed["id"] = call.id
    if call.name != wire.text_at(before, "name"):
        changed["name"] = call.name
    if arguments != ({} if before.get("args") is None else before["args"]):
        changed["args"] = arguments
    return part if part and changed == before else {**part, key: changed}


def _write_answer(result: ToolResult) -> Any:
    part: Mapping[str, Any] = result.origin if isinstance(result.origin, Mapping) else {}
    key, before = _find(part, "functionResponse")
    changed = dict(before or {})
    if not result.call_id:
        changed.pop("id", None)
    elif result.call_id != wire.text_at(changed, "id"):
        changed["id"] = result.call_id
    if before is None or (result.name is not None and result.name != wire.text_at(before, "name")):
        changed["name"] = result.name or "unknown"
    if before is None or _read_response(before) != result.content:
        changed["response"] = _write_response(result, changed.get("response"))
        media = [_write_part(each) for each in result.content if not isinstance(each, Text)]
        if media or changed.get("parts"):
            changed["parts"] = media
    return part if part and changed == before else {**part, key: changed}


def _write_response(result: ToolResult, before: Any) -> dict[str, Any]:
    """A changed text stands under the field that held the text, or under the one that the documentation names."""
    key = _ERROR if result.is_error else _OUTPUT
    if isinstance(before, Mapping) and len(before) == 1:
        key = next((str(name) for name, value in before.items() if isinstance(value, str)), key)
    return {key: wire.join_text(result.content)}


def _write_image(image: Image) -> dict[str, Any]:
    head, comma, data = image.source.partition(",")
    if head.startswith("data:") and comma:
        mime = head.removeprefix("data:").partition(";")[0]
        return {"inlineData": {"mimeType": mime or "image/png", "data": data}}
    return {"fileData": {"fileUri": image.source}}


def _spelling(data: Mapping[str, Any], name: str) -> str:
    """The name as this object spells it."""
    return name if name in data or _SNAKE[name] not in data else _SNAKE[name]


def _get(data: Mapping[str, Any], name: str) -> Any:
    return data.get(_spelling(data, name))


def _find(part: Mapping[str, Any], name: str) -> tuple[str, Mapping[str, Any] | None]:
    """The object under a name, and how the name is spelt; None if there is no object."""
    key = _spelling(part, name)
    try:
        return key, None if part.get(key) is None else wire.plain(part[key])
    except ValueError:
        return key, None
