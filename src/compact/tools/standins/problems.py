"""What the rules of all providers share: a reason for a refusal, the settings, and words for JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Item: TypeAlias = Mapping[str, Any]

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a provider refuses a request, in the provider's words where they are public."""

    message: str
    param: str | None = None
    """OpenAI names the field."""
    code: str | None = None
    status: int = 400
    kind: str = "invalid_request_error"
    """The `type` of the error."""
    page: str = ""
    """The page of the provider's documentation that the rule comes from: whose documentation, and the path in it."""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What differs between models of one provider. The defaults are the stricter side that is documented."""

    tools_required: bool = True
    """Anthropic, Converse: a request with tool blocks defines tools."""
    prefill: bool = True
    """Anthropic: the list may end with the beginning of the reply. Newer models refuse that."""
    system_messages: bool = False
    """Anthropic: a system message may follow a user message. Newer models accept that."""
    alternate_roles: bool = False
    """Anthropic, Gemini: neighbours have different roles. Both accept neighbours of one role; gateways and older models do not."""
    json_arguments: bool = False
    """OpenAI: arguments of past calls are JSON objects. OpenAI itself takes any text; some compatible servers do not."""
    prefix_checks: bool | None = None
    """Anthropic: thinking is refused when anything before it has changed. None: as the documentation says of the model."""
    thought_signatures: bool = False
    """Gemini: in the current turn, the first call of each step carries its thought signature. Newer models ask for that."""
    signing_key: bytes | None = None
    """The key with which signatures of thinking are checked. None: any signature is accepted."""


def on_page(page: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    """The same problems, with the page of those that name none."""
    return (problem if problem.page else replace(problem, page=page) for problem in problems)


def kind_of(value: Any) -> str:
    """The JSON kind of a value, as error messages call it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a decimal"
    return "an object" if isinstance(value, Mapping) else "an array"


def has_surrogate(value: Any) -> bool:
    """Whether a string inside a JSON value is not valid Unicode."""
    return any(not text.isascii() and _SURROGATE.search(text) for text in _strings(value))


def _strings(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        entry = stack.pop()
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, Mapping):
            stack.extend(entry.keys())
            stack.extend(entry.values())
        elif isinstance(entry, list | tuple):
            stack.extend(entry)
