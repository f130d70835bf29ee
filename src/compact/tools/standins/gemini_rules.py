"""What Google's Gemini API refuses, from its documentation and its public error messages.

Written without looking at `compact.messages.legality`, so that one does not repeat the mistakes of the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from compact.tools.standins.problems import Item, Problem, Rules, has_surrogate
from compact.tools.standins.signing import is_signed

_API = "Gemini API: api/generate-content"
_CONTENT = "Gemini API: api/caching#Content"
_PART = "Gemini API: api/caching#Part"
_CALLS = "Gemini API: docs/function-calling"
_SIGNATURES = "Gemini API: docs/thought-signatures"
_IMAGES = "Gemini API: docs/image-understanding"
_VERTEX = "Vertex AI: generative-ai/docs/model-reference/inference"

_NAMES = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
    "toolCall": "tool_call",
    "toolResponse": "tool_response",
}
"""What a part can consist of beside text, in both spellings that the JSON form of a message takes."""
_BESIDE = frozenset(
    [
        "thought",
        "thoughtSignature",
        "thought_signature",
        "videoMetadata",
        "video_metadata",
        "mediaResolution",
        "media_resolution",
        "partMetadata",
        "part_metadata",
    ]
)
_CALL_FIELDS = frozenset({"id", "name", "args"})
_ANSWER_FIELDS = frozenset({"id", "name", "response", "parts", "willContinue", "will_continue", "scheduling"})
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
MAX_IMAGES = 3_600
NO_SIGNATURES = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""What the documentation tells hosts to send in place of a signature that they do not have."""


def find_problems(body: Any, rules: Rules | None = None) -> list[Problem]:
    """Every reason why Google refuses the body of `models/{model}:generateContent`; empty if it accepts it."""
    rules = rules or Rules()
    if not isinstance(body, dict) or has_surrogate(body):
        return [_problem("Invalid JSON payload received. Unexpected token.", _API)]
    contents = body.get("contents")
    if not isinstance(contents, list):
        if contents is not None:
            return [_problem("Invalid value at 'contents' (type.googleapis.com/google.ai.Content)", _API)]
        contents = []
    if not contents:
        return [_problem("* GenerateContentRequest.contents: contents is not specified\n", _API)]
    found = [
        each for n, content in enumerate(contents) for each in _content_problems(f"contents[{n}]", content)
    ]
    found += _field_problems(body)
    if not found:
        # The provider looks at the order only where every content has the right form.
        found += _order_problems(contents, rules)
        found += _signature_problems(contents, rules)
        found += _image_problems(contents)
    return found


def _problem(message: str, page: str) -> Problem:
    return Problem(message, kind="INVALID_ARGUMENT", page=page)


def _field_problems(body: Item) -> Iterator[Problem]:
    system = body.get("systemInstruction", body.get("system_instruction"))
    if system is not None and not (isinstance(system, dict) and isinstance(system.get("parts"), list)):
        yield _problem("Invalid value at 'system_instruction' (type.googleapis.com/google.ai.Content)", _API)
    names = [
        declared.get("name")
        for tool in body.get("tools") or ()
        if isinstance(tool, dict)
        for declared in tool.get("functionDeclarations", tool.get("function_declarations")) or ()
    ]
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield _problem(
                "* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name.",
                _CALLS,
            )
        elif names.count(name) > 1:
            yield _problem(f"Duplicate function declaration found: {name}", _CALLS)


# --- one content


def _content_problems(where: str, content: Any) -> Iterator[Problem]:
    if not isinstance(content, dict):
        yield _problem(f"Invalid value at '{where}' (type.googleapis.com/google.ai.Content)", _CONTENT)
        return
    for name in content:
        if name not in ("role", "parts"):
            yield _problem(
                f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field.",
                _CONTENT,
            )
    if content.get("role", "user") not in ("user", "model"):
        yield _problem("Please use a valid role: user, model.", _CONTENT)
    parts = content.get("parts")
    if parts is not None and not isinstance(parts, list):
        yield _problem(f"Invalid value at '{where}.parts' (type.googleapis.com/google.ai.Part)", _CONTENT)
    elif not parts:
        yield _problem(
            f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.\n", _CONTENT
        )
    else:
        for place, part in enumerate(parts):
            yield from _part_problems(f"{where}.parts[{place}]", part)


def _part_problems(where: str, part: Any) -> Iterator[Problem]:
    if not isinstance(part, dict):
        yield _problem(f"Invalid value at '{where}' (type.googleapis.com/google.ai.Part)", _PART)
        return
    said = {name: value for name, value in part.items() if value is not None}
    data = [name for name in said if name == "text" or name in _NAMES or name in _NAMES.values()]
    for name in said:
        if name not in data and name not in _BESIDE:
            yield _problem(
                f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field.",
                _PART,
            )
    if not data:
        yield _problem(
            f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field\n",
            _PART,
        )
    elif len(data) > 1:
        yield _problem(
            f"Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set '{data[1]}'",
            _PART,
        )
    elif data == ["text"]:
        yield from _text_problems(where, said)
    elif not isinstance(said[data[0]], dict):
        yield _problem(f"Invalid value at '{where}.{data[0]}'", _PART)
    elif data[0] in ("functionCall", "function_call"):
        yield from _call_problems(f"{where}.function_call", said[data[0]])
    elif data[0] in ("functionResponse", "function_response"):
        yield from _answer_problems(f"{where}.function_response", said[data[0]])
    elif data[0] in ("inlineData", "inline_data"):
        blob = said[data[0]]
        if not isinstance(blob.get("data"), str) or not isinstance(
            blob.get("mimeType", blob.get("mime_type")), str
        ):
            yield _problem(
                f"* GenerateContentRequest.{where}.inline_data: a blob has data and a mime_type", _PART
            )


def _text_problems(where: str, part: Item) -> Iterator[Problem]:
    if not isinstance(part["text"], str):
        yield _problem(f"Invalid value at '{where}.text' (TYPE_STRING)", _PART)
    elif not part["text"] and not _signature(part):
        yield _problem(
            "Unable to submit request because it must have a text parameter. Add a text parameter and try again.",
            _VERTEX,
        )


def _call_problems(where: str, call: Item) -> Iterator[Problem]:
    yield from _name_problems(where, call)
    yield from _unknown_fields(where, call, _CALL_FIELDS)
    if not isinstance(call.get("args", {}), dict | None):
        yield _problem(
            f"Invalid value at '{where}.args' (type.googleapis.com/google.protobuf.Struct)", _CALLS
        )


def _answer_problems(where: str, answer: Item) -> Iterator[Problem]:
    yield from _name_problems(where, answer)
    yield from _unknown_fields(where, answer, _ANSWER_FIELDS)
    if not isinstance(answer.get("response"), dict):
        yield _problem(
            f"Invalid value at '{where}.response' (type.googleapis.com/google.protobuf.Struct)", _CALLS
        )


def _name_problems(where: str, item: Item) -> Iterator[Problem]:
    name = item.get("name")
    if not isinstance(name, str) or not name:
        yield _problem(f"* GenerateContentRequest.{where}.name: Name cannot be empty.\n", _CALLS)
    elif not _NAME.fullmatch(name):
        yield _problem(f"* GenerateContentRequest.{where}.name: Invalid function name.\n", _CALLS)
    if not isinstance(item.get("id", ""), str | None):
        yield _problem(f"Invalid value at '{where}.id' (TYPE_STRING)", _CALLS)


def _unknown_fields(where: str, item: Item, known: frozenset[str]) -> Iterator[Problem]:
    for name in item:
        if name not in known:
            yield _problem(
                f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field.",
                _PART,
            )


# --- the order of contents


def _order_problems(contents: Sequence[Item], rules: Rules) -> Iterator[Problem]:
    roles = [content.get("role", "user") for content in contents]
    if roles[0] != "user":
        yield _problem("First content should be with role 'user', got model", _CONTENT)
    for index, content in enumerate(contents):
        calls, answers = _named(content, "functionCall"), _named(content, "functionResponse")
        before = contents[index - 1] if index else {"parts": []}
        if rules.alternate_roles and index and roles[index] == roles[index - 1]:
            yield _problem(
                "Please ensure that multiturn requests alternate between user and model.", _CONTENT
            )
        if calls and roles[index] != "model":
            yield _problem("Please ensure that function calls are in a content with role 'model'.", _CALLS)
        elif calls and (not index or roles[index - 1] != "user"):
            yield _problem(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
                _CALLS,
            )
        if answers and roles[index] != "user":
            yield _problem("Please ensure that function responses are in a content with role 'user'.", _CALLS)
        elif answers and not _named(before, "functionCall"):
            yield _problem(
                "Please ensure that function response turn comes immediately after a function call turn.",
                _CALLS,
            )
        following = contents[index + 1] if index + 1 < len(contents) else {"parts": []}
        if calls:
            yield from _match_problems(calls, _named(following, "functionResponse"))


def _match_problems(calls: Sequence[Item], answers: Sequence[Item]) -> Iterator[Problem]:
    if len(calls) != len(answers):
        yield _problem(
            "Please ensure that the number of function response parts is equal to the number of function call parts of the "
            "function call turn.",
            _CALLS,
        )
        return
    for key in ("name", "id"):
        asked = sorted(str(call.get(key) or "") for call in calls)
        if asked != sorted(str(answer.get(key) or "") for answer in answers):
            yield _problem(
                f"Please ensure that the {key} of each function response matches its function call.", _CALLS
            )


def _signature_problems(contents: Sequence[Item], rules: Rules) -> Iterator[Problem]:
    if rules.signing_key is not None:
        for content in contents:
            for part in content["parts"]:
                signature = _signature(part)
                if signature and signature not in NO_SIGNATURES and not is_whole(part, rules.signing_key):
                    yield _problem("Corrupted thought signature.", _SIGNATURES)
    if not rules.thought_signatures:
        return
    starts = [
        n for n, content in enumerate(contents) if content.get("role", "user") == "user" and _is_said(content)
    ]
    for content in contents[max(starts, default=0) :]:
        first = next(((n, part) for n, part in enumerate(content["parts"]) if _call_of(part)), None)
        if first is not None and not _signature(first[1]):
            place, part = first
            yield _problem(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
                "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
                f"call `default_api:{_call_of(part)['name']}`, position {place + 1}.",
                _SIGNATURES,
            )


def _image_problems(contents: Sequence[Item]) -> Iterator[Problem]:
    kinds = (
        each.get("mimeType", each.get("mime_type"))
        for content in contents
        for name in ("inlineData", "fileData")
        for each in _named(content, name)
    )
    count = sum(isinstance(kind, str) and kind.startswith("image/") for kind in kinds)
    if count > MAX_IMAGES:
        yield _problem(f"Too many images in request: {count}. The maximum is {MAX_IMAGES}.", _IMAGES)


def signed_text(part: Item) -> str:
    """What the signature of a part is made of: everything else in it."""
    return json.dumps({name: value for name, value in part.items() if name not in _SIGNATURE}, sort_keys=True)


def is_whole(part: Item, key: bytes) -> bool:
    """Whether a signed part is as it was when it was signed."""
    # Google's own clients write bytes in the alphabet that is safe in addresses.
    signature = str(_signature(part)).translate(str.maketrans("-_", "+/"))
    return is_signed(signed_text(part), signature, key)


_SIGNATURE = ("thoughtSignature", "thought_signature")


def _signature(part: Item) -> Any:
    return part.get("thoughtSignature", part.get("thought_signature"))


def _call_of(part: Item) -> Any:
    return part.get("functionCall", part.get("function_call"))


def _named(content: Item, name: str) -> list[Item]:
    found = [part.get(name, part.get(_NAMES[name])) for part in content["parts"]]
    return [each for each in found if each is not None]


def _is_said(content: Item) -> bool:
    """Whether a user's content holds more than function responses: there the current turn begins."""
    return any(not {"functionResponse", "function_response"} & part.keys() for part in content["parts"])
