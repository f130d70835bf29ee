"""What errors and replies say, gathered from wherever SDKs put it: class, status, code, message, body, response, usage."""

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
"""Objects such as mocks answer every attribute with another object, without end."""

_NAME_KEYS = frozenset(
    (
        "code", "type", "status", "reason", "error_type", "errortype", "error_code", "errorcode", "name", "__type",
    )
)  # fmt: skip
_CODE_KEYS = _NAME_KEYS - {"name", "status"}
"""`name` is often the provider's, `status` how far it came."""
_STATUS_KEYS = frozenset(("code", "status", "status_code", "statuscode", "http_status", "httpstatuscode"))
_TELLING_KEYS = frozenset(
    # Where errors say what happened. The request itself is excluded, because a conversation may quote an old overflow.
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
_ABOUT_INPUT = re.compile(
    r"\b(?:invalid|arguments?|values?|inputs?|pars(?:e|ed|ing)|json|schema|contents?|fields?|tools?|functions?|param\w*|messages?\b.{0,3}[\[.]|"
    r"got|received|unexpected|expected|near|valid(?:ate|ation)?|unterminated|malformed|unsupported)\b",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s")
_WORDS = re.compile(r"\w+\W+\w+")
_MOST_DIGITS = 12
_OBJECT = re.compile(r"\s*\w+\(\w+=")
_ODD_ESCAPE = re.compile(r"\\(?![\\'\"nrtxuU])")
"""A backslash that Python would warn about."""


@dataclass(slots=True)
class Evidence:
    """What one error says, without its causes."""

    texts: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Codes, types and class names."""
    codes: set[str] = field(default_factory=set)
    """Those of them that are fields of the error, with which it says itself what it is."""
    statuses: set[int] = field(default_factory=set)
    limit: int | None = None
    requested: int | None = None
    seen: dict[int, Any] = field(default_factory=dict)
    """Objects that were read, by identity. They are kept alive so that no identity is reused."""

    @property
    def text(self) -> str:
        """All texts, each once, up to a length."""
        return " ;\n".join(dict.fromkeys(self.texts))[:_MAX_TEXT]


def layers(problem: Any) -> Iterator[Evidence]:
    """Yield the evidence of an error and of its explicit causes, outermost first.

    An exception that was merely being handled at the time (`__context__`) may be unrelated, so it is ignored.
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
    """Return the error that a reply carries instead of an answer: a body with `error`, a failed choice, a refused response."""
    if isinstance(reply, list | tuple) and reply and isinstance(reply[0], Mapping):
        reply = reply[0]  # Google's REST API wraps its errors in a list
    if isinstance(reply, str | bytes) or reply is None:
        return None
    status = _attribute(reply, "status_code")
    if isinstance(status, int) and status >= 400:
        return reply
    if _is_error(error := _part(reply, "error")):
        return error
    if "error" in (_part(reply, "object"), _part(reply, "type")) or _is_aws_error(reply):
        return reply
    choices = _part(reply, "choices")
    for choice in choices if isinstance(choices, list | tuple) else ():
        if _is_error(failed := _part(choice, "error")):
            return failed
    if _part(reply, "stop_reason") == "error" or _part(reply, "stopReason") == "error":
        return _part(reply, "error_message") or _part(reply, "errorMessage") or _part(reply, "content")
    return None


def stop_reasons(reply: Any) -> set[str]:
    """Return why a reply ended, in its provider's words."""
    choices = _part(reply, "choices")
    said = [_part(reply, "stop_reason"), _part(reply, "stopReason")]
    if isinstance(choices, list | tuple):
        said += [_part(choice, "finish_reason") for choice in choices]
    return {reason for reason in said if isinstance(reason, str)}


def reply_tokens(reply: Any) -> int | None:
    """Return the output tokens that a reply reports."""
    usage = _part(reply, "usage")
    counts = (_part(usage, name) for name in ("output_tokens", "outputTokens", "completion_tokens"))
    return next((count for count in counts if isinstance(count, int)), None)


_USAGE = (
    ("prompt_tokens", ()),
    ("input_tokens", ("cache_read_input_tokens", "cache_creation_input_tokens")),
    ("inputTokens", ("cacheReadInputTokens", "cacheWriteInputTokens")),
    ("prompt_token_count", ()),
    ("promptTokenCount", ()),
)
"""The field with the input tokens, and the fields that must be added: Anthropic and Bedrock count cached tokens separately."""


def input_tokens(reply: Any) -> int | None:
    """Return the input tokens that a reply reports, cached ones included; None if it does not say."""
    usage = _part(reply, "usage") or _part(reply, "usage_metadata") or _part(reply, "usageMetadata")
    for total, cached in _USAGE:
        count = _part(usage, total)
        if isinstance(count, int) and count > 0:
            return count + sum(_whole(_part(usage, name)) or 0 for name in cached)
    return None


_CACHED = (
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "cache_read_input_tokens",
    "cacheReadInputTokens",
    "cached_content_token_count",
    "cachedContentTokenCount",
    "input_token_details.cache_read",
    "cache_read_tokens",
)
"""Where usage says how many input tokens the provider's cache served."""
_FOR_AN_HOUR = ("cache_creation.ephemeral_1h_input_tokens",)
"""Where it says how many were put there for an hour."""


def cached_tokens(reply: Any) -> int | None:
    """Return the input tokens that the provider's cache served, as a reply reports them; None if it does not say."""
    return _count_at(reply, _CACHED)


def is_cached_for_an_hour(reply: Any) -> bool:
    """Whether a reply reports that its request was put into the provider's cache for an hour."""
    return bool(_count_at(reply, _FOR_AN_HOUR))


def _count_at(reply: Any, paths: tuple[str, ...]) -> int | None:
    usage = _part(reply, "usage") or _part(reply, "usage_metadata") or _part(reply, "usageMetadata")
    for path in paths:
        found = usage
        for name in path.split("."):
            found = _part(found, name)
        count = _whole(found)
        if count is not None and not isinstance(found, str):
            return count
    return None


def _is_aws_error(reply: Any) -> bool:
    return isinstance(reply, Mapping) and isinstance(reply.get("__type"), str)


def _is_error(error: Any) -> bool:
    """Whether this is an error, and not an attribute that an object makes up on access."""
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
    """Gather a text and the body that it may quote. Gateways quote the provider's answer as a string.

    An object behind words about the request, or before other words, is a part of the request, whatever it looks like.
    """
    text = text[:_MAX_TEXT]
    shown = _parse_object(text)
    if shown is not None:
        _gather(shown, found, depth + 1)
        return
    start, stop = text.find("{"), text.rfind("}") + 1
    is_body = 0 <= start < stop and not _ABOUT_INPUT.search(text[:start]) and not _WORDS.search(text[stop:])
    quoted = _parse(text[start:stop]) if is_body else None
    if quoted is not None:
        _gather(quoted, found, depth + 1)
        text = text[:start] + text[stop:]
    if text.strip():
        found.texts.append(text)


def _parse(text: str) -> Any:
    """Parse a body that is JSON, or a Python literal in an exception's text; None if it is neither, for instance cut off."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(_ODD_ESCAPE.sub(r"\\\\", text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _parse_object(text: str) -> dict[str, Any] | None:
    """Parse a text that is the `repr` of an error object and nothing else, such as `ResponseError(code='...', message='...')`."""
    if not _OBJECT.match(text):
        return None
    try:
        shown = ast.parse(text.strip(), mode="eval").body
        if isinstance(shown, ast.Call) and isinstance(shown.func, ast.Name) and not shown.args:
            return {each.arg: ast.literal_eval(each.value) for each in shown.keywords if each.arg}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
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
        if key in _CODE_KEYS and not _SPACE.search(value):
            found.codes.add(value)
    if key in _TELLING_KEYS:
        _gather(value, found, depth + 1)


def _gather_object(value: Any, found: Evidence, depth: int) -> None:
    if id(value) in found.seen or len(found.seen) >= _MAX_OBJECTS:
        return
    found.seen[id(value)] = value
    if isinstance(value, BaseException):
        found.names |= {kind.__name__ for kind in type(value).__mro__ if kind not in _PLAIN_ERRORS}
        _gather_text(_text_of(value), found, depth)
    for name in _ATTRIBUTES:
        entry = _attribute(value, name)
        if name in ("message", "body", "response", "error"):
            _gather(entry, found, depth + 1)
        elif entry is not None and not callable(entry):
            _gather_entry(name, getattr(entry, "value", entry), found, depth)
    if isinstance(_attribute(value, "status_code"), int):
        for read in ("json", "text"):
            _gather(_read_body(value, read), found, depth + 1)


_PLAIN_ERRORS = (object, BaseException, Exception)


def _text_of(problem: BaseException) -> str:
    try:
        return str(problem)
    except Exception:  # the __str__ of an SDK may fail on an unexpected body
        return ""


def _read_body(response: Any, name: str) -> Any:
    """Return the body of an HTTP response; None if it is a stream that was not read."""
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
        return value if abs(value) < 10**_MOST_DIGITS else None
    is_number = isinstance(value, str) and len(value) <= _MOST_DIGITS and value.isascii() and value.isdigit()
    return int(value) if is_number else None
