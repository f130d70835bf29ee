"""Names that mean an overflow, and names and sentences that mean another error.

Sentences that mean an overflow are recognised by `compact.errors.says_overflow`.
"""

from __future__ import annotations

import re

from compact.errors import plain_wording

TOO_LARGE_STATUS = 413
OTHER_STATUSES = frozenset((401, 402, 403, 404, 405, 407, 408, 409, 415, 429, 451))

WINDOW_ENDED = frozenset(("model_context_window_exceeded", "model_length"))
"""Stop reasons of a reply that reached the end of the window: Anthropic, Bedrock and GLM; Mistral."""

# --- names

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HEAD = re.compile(
    # `litellm.BadRequestError: ContextWindowExceededError: ...`, `(context_length_exceeded) ...`, `Code: request_too_large`
    r"(?:\A\W{0,9}(?:(?:error )?code: )?|\n\W{0,9}(?:error )?code: )(?:\d{3} (?:- )?)?(?P<names>(?:[\w.]+: )*[\w.]+)(?=[):]|\s*(?:$|\n))",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\b(?:[A-Z][a-z]+){2,}\b")
_SENT = frozenset(
    ("context", "prompt", "input", "token", "tokens", "request", "payload", "entity", "message", "messages", "conversation")
)  # fmt: skip
_OVER = frozenset(
    ("exceed", "exceeds", "exceeded", "exceeding", "overflow", "long", "large", "above", "reached")
)
_NOT_INPUT = frozenset(
    (
        "output", "completion", "completions", "response", "image", "file", "audio", "header", "headers", "field", "rate",
        "quota", "deadline", "time", "timeout", "budget", "usage", "billing", "stop", "finish", "thinking", "minute", "day",
        "requests", "depth", "recursion",
    )
)  # fmt: skip
_OTHER_NAMES = re.compile(
    r"rate.?limit|quota|throttl|too.?many.?requests|time.?out|timed.?out|deadline|connection|disconnect|overloaded|"
    r"unavailable|permission|authenticat|unauthori[sz]ed|forbidden|not.?found|billing|budget.?exceeded|usage.?limit|"
    r"content.?(?:filter|policy)|length.?finish|resource.?exhausted|max.?turns|cancel|"
    # Programming errors of the host, whatever they quote.
    r"^(?:Name|Attribute|Import|Key|Type|Syntax)Error$",
    re.IGNORECASE,
)
_REFUSED_CONTENT = re.compile(
    r"reject|moderat|safety|unsafe|harm|blocked|flagged|encoding|character|unicode|json|schema|parse|parsing|malform|syntax|"
    r"signature|duplicate|unsupported|mismatch|violat|denied|invalid.?(?:value|content|message|format|type)",
    re.IGNORECASE,
)
"""What is wrong with a request besides its length."""
_OF_ANY_ERROR = frozenset(
    (
        "error", "errors", "exception", "invalid", "bad", "request", "argument", "arguments", "args", "parameter",
        "parameters", "param", "validation", "client", "server", "internal", "api", "http", "status", "fail", "failed",
        "failure", "response", "call", "provider", "upstream", "model", "llm", "unprocessable", "entity", "badrequest",
        "service", "runtime", "value", "unknown", "fatal",
    )
)  # fmt: skip
_OF_LENGTH = frozenset(("length", "limit", "max", "maximum", "size", "window"))


def names_overflow(name: str) -> bool:
    """Whether a code, type or class name means that a request was too long."""
    words = {word.lower() for word in _WORDS.findall(name)}
    if words & _NOT_INPUT or not words & _OVER:
        return False
    sent = words & _SENT
    # `max_tokens` limits the reply. That it is exceeded says nothing about the prompt.
    return bool(sent) and not ("max" in words and sent <= {"token", "tokens"})


def names_another_error(name: str) -> bool:
    """Whether a code, type or class name means an error that has nothing to do with length."""
    return bool(_OTHER_NAMES.search(name))


def names_refused_content(name: str) -> bool:
    """Whether a code means that something in the request is refused for what it is, not for its length."""
    return bool(_REFUSED_CONTENT.search(name)) and not _speaks_of_length(name)


def names_its_own_error(name: str) -> bool:
    """Whether a code says something of its own: neither an overflow nor what any error could be called."""
    words = {word.lower() for word in _WORDS.findall(name)}
    return bool(words - _OF_ANY_ERROR) and not _speaks_of_length(name)


def _speaks_of_length(name: str) -> bool:
    words = {word.lower() for word in _WORDS.findall(name)}
    return bool(words & (_SENT - {"request", "entity", "message", "messages"} | _OVER | _OF_LENGTH))


def identifiers(text: str) -> list[str]:
    """Return the identifiers at the head of a text. Further on, a name may be what the error is about."""
    return [name for head in _HEAD.finditer(text) for name in _IDENTIFIER.findall(head["names"])]


# --- sentences

_RATE = re.compile(
    r"\bper[ -]?(?:minute|min|second|sec|hour|day|month)\b|/ ?(?:min|minute|day)\b|\b(?:i?tpm|rpm|tpd|rpd|otpm)\b|"
    r"rate[ _-]?limit|\bquota\b|too many requests|throttl|\bwait (?:before|and|a)\b|\b(?:try|retry)(?:ing)? (?:again )?"
    r"(?:in \d|after|later)|\b(?:hourly|daily|weekly|monthly|lifetime|expired?)\b|resource (?:has been )?exhausted|\bcredits?\b|\bbilling\b|can only afford|usage limit"
)
_TIME = re.compile(r"timed? ?out\b|deadline exceeded|context cancell?ed")
_FINISH = re.compile(
    r"could not finish|output limit was reached|length limit was reached|finish_?reason|"
    r"(?:response|completion|output|reply|generation) (?:was |got |is )?(?:truncated|cut off|incomplete)"
)
_REFUSED_PARAMETER = re.compile(
    r"\bunrecogni[sz]ed\b|\bnot permitted\b|\binvalid value\b|\bsupported values\b|\bextra inputs\b|\binvalid schema\b"
)
_SMALL_WINDOW = re.compile(r"context window\b.{0,60}\btoo small")


def says_another_error(text: str) -> bool:
    """Whether a sentence is about a rate, a quota, time, a refused parameter, or a reply that was cut."""
    said = plain_wording(text)
    return any(pattern.search(said) for pattern in (_RATE, _TIME, _FINISH, _SMALL_WINDOW, _REFUSED_PARAMETER))
