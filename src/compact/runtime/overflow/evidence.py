"""What an error says of itself, gathered from wherever SDKs put it: class, status, code, message, body, response."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_MAX_TEXT = 20_000
_MAX_DEPTH = 16
_MAX_LAYERS = 12
_MAX_OBJECTS = 200
"""An object that answers every attribute with another one, as mocks do, has no end."""

_NAME_KEYS = frozenset(
    (
        "code",
        "type",
        "status",
        "reason",
        "error_type",
        "errortype",
        "error_code",
        "errorcode",
        "name",
        "__type",
    )
)
_STATUS_KEYS = frozenset(("code", "status", "status_code", "statuscode", "http_status", "httpstatuscode"))
_TELLING_KEYS = frozenset(
    # Where errors keep what happened. What was sent is not among them: a conversation may quote an old overflow.
    (
        "message", "msg", "detail", "details", "error", "errors", "error_message", "errormessage", "raw", "metadata",
        "body", "description", "title", "innererror", "inner_error", "cause", "responsemetadata", "error_msg", "reason",
        "original_message", "provider_error", "upstream_error",
    )
)  # fmt: skip
_LIMIT_KEYS = frozenset(("n_ctx", "max_context_length", "context_length", "context_window", "max_model_len"))
_REQUESTED_KEYS = frozenset(("n_prompt_tokens", "prompt_tokens", "input_tokens", "requested_tokens"))
_ATTRIBUTES = ("message", "body", "response", "error", "code", "type", "status", "status_code", "http_status")
_WRAPPED = ("original_exception", "inner_exception")
_STATUSES = range(100, 600)
_ODD_ESCAPE = re.compile(r"\\(?![\\'\"nrtxuU])")
"""Python would warn of such a backslash."""


@dataclass(slots=True)
class Evidence:
    """What one error says, without what it was raised from."""

    texts: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Codes, types and class names."""
    statuses: set[int] = field(default_factory=set)
    limit: int | None = None
    requested: int | None = None
    seen: dict[int, Any] = field(default_factory=dict)
    """The objects that were asked, by identity; kept, so that no identity is used twice."""

    @property
    def text(self) -> str:
        """Everything that was said, each text once."""
        return " ;\n".join(dict.fromkeys(self.texts))


def layers(problem: Any) -> Iterator[Evidence]:
    """The evidence of an error and of what it was explicitly raised from, outermost first.

    What merely was being handled at the time (`__context__`) may be unrelated, and is not looked at.
    """
    waiting, seen = [problem], set[int]()
    while waiting and len(seen) < _MAX_LAYERS:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        found = Evidence()
        _gather(current, found, 0)
        yield found
        if isinstance(current, BaseException):
            waiting += [current.__cause__, *(_attribute(current, name) for name in _WRAPPED)]
            waiting += getattr(current, "exceptions", ()) if isinstance(current, BaseExceptionGroup) else ()


def reported_error(reply: Any) -> Any:
    """The error that stands in a reply where an answer should: a body with `error`, a failed choice, a refused response."""
    if isinstance(reply, list | tuple) and reply and isinstance(reply[0], Mapping):
        reply = reply[0]  # Google's REST wraps its errors so
    if isinstance(reply, str | bytes) or reply is None:
        return None
    status = _attribute(reply, "status_code")
    if isinstance(status, int) and status >= 400:
        return reply
    if _tells(error := _part(reply, "error")):
        return error
    if "error" in (_part(reply, "object"), _part(reply, "type")) or _is_aws_error(reply):
        return reply
    choices = _part(reply, "choices")
    for choice in choices if isinstance(choices, list | tuple) else ():
        if _tells(failed := _part(choice, "error")):
            return failed
    if _part(reply, "stop_reason") == "error" or _part(reply, "stopReason") == "error":
        return _part(reply, "error_message") or _part(reply, "errorMessage") or _part(reply, "content")
    return None


def stop_reasons(reply: Any) -> set[str]:
    """Why a reply ended, in its provider's words."""
    choices = _part(reply, "choices")
    said = [_part(reply, "stop_reason"), _part(reply, "stopReason")]
    said += (
        [_part(choice, "finish_reason") for choice in choices] if isinstance(choices, list | tuple) else []
    )
    return {reason for reason in said if isinstance(reason, str)}


def reply_tokens(reply: Any) -> int | None:
    """What a reply says that it took by itself."""
    usage = _part(reply, "usage")
    counts = (_part(usage, name) for name in ("output_tokens", "outputTokens", "completion_tokens"))
    return next((count for count in counts if isinstance(count, int)), None)


def _is_aws_error(reply: Any) -> bool:
    return isinstance(reply, Mapping) and isinstance(reply.get("__type"), str)


def _tells(error: Any) -> bool:
    """Whether this is an error, and not an attribute that an object makes up when it is asked."""
    if isinstance(error, str | bytes | Mapping | list | tuple | BaseException):
        return bool(error)
    own = ("message", "code", "type", "msg", "detail", "model_fields")
    return any(inspect.getattr_static(error, name, None) is not None for name in own)


def _gather(value: Any, found: Evidence, depth: int) -> None:
    if depth > _MAX_DEPTH or value is None:
        return
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        _gather_text(value, found, depth)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            _gather_entry(str(key).lower(), entry, found, depth)
    elif isinstance(value, list | tuple):
        for entry in value[:20]:
            _gather(entry, found, depth + 1)
    elif not isinstance(value, int | float):
        _gather_object(value, found, depth)


def _gather_text(text: str, found: Evidence, depth: int) -> None:
    """A text, and the body inside it where it is one: gateways quote the provider's answer as a string."""
    text = text[:_MAX_TEXT]
    start, stop = text.find("{"), text.rfind("}") + 1
    quoted = _parsed(text[start:stop]) if 0 <= start < stop else None
    if quoted is not None:
        _gather(quoted, found, depth + 1)
        text = text[:start] + text[stop:]
    if text.strip():
        found.texts.append(text)


def _parsed(text: str) -> Any:
    """A body as JSON, or as Python shows it in an exception's text; None: only a part of one, to be read as words."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(_ODD_ESCAPE.sub(r"\\\\", text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _gather_entry(key: str, value: Any, found: Evidence, depth: int) -> None:
    number = _whole(value)
    if number is not None:
        if key in _STATUS_KEYS and number in _STATUSES:
            found.statuses.add(number)
        elif key in _LIMIT_KEYS and number > 0:
            found.limit = number
        elif key in _REQUESTED_KEYS and number > 0:
            found.requested = number
        return
    if key in _NAME_KEYS and isinstance(value, str) and len(value) < 100:
        found.names.add(value)
    if key in _TELLING_KEYS:
        _gather(value, found, depth + 1)


def _gather_object(value: Any, found: Evidence, depth: int) -> None:
    if id(value) in found.seen or len(found.seen) >= _MAX_OBJECTS:
        return
    found.seen[id(value)] = value
    if isinstance(value, BaseException):
        found.names |= {kind.__name__ for kind in type(value).__mro__ if kind not in _PLAIN_ERRORS}
        _gather_text(_said(value), found, depth)
    for name in _ATTRIBUTES:
        entry = _attribute(value, name)
        if name in ("message", "body", "response", "error"):
            _gather(entry, found, depth + 1)
        elif entry is not None and not callable(entry):
            _gather_entry(name, getattr(entry, "value", entry), found, depth)
    if isinstance(_attribute(value, "status_code"), int):
        for read in ("json", "text"):
            _gather(_answered(value, read), found, depth + 1)


_PLAIN_ERRORS = (object, BaseException, Exception)


def _said(problem: BaseException) -> str:
    try:
        return str(problem)
    except Exception:  # an SDK's own __str__ may fail on an odd body
        return ""


def _answered(response: Any, name: str) -> Any:
    """The body of an HTTP response, as far as it was read; asking for an unread stream raises."""
    try:
        entry = getattr(response, name, None)
        answer = entry() if callable(entry) else entry
    except Exception:
        return None
    if hasattr(answer, "__await__"):
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        return None
    return answer


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # a property of a foreign object
        return None


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else _attribute(value, name)


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None
