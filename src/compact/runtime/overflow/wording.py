"""How errors are called and worded: names and sentences that mean an overflow, and those that mean something else.

Providers change their sentences; what stays is their grammar. Something that is sent (prompt, input, messages, tokens)
exceeds, or is too long for, something that bounds it (context window, maximum, limit).
"""

from __future__ import annotations

import re

TOO_LARGE_STATUS = 413
OTHER_STATUSES = frozenset((401, 402, 403, 404, 405, 407, 408, 409, 415, 429, 451))

WINDOW_ENDED = frozenset(("model_context_window_exceeded", "model_length"))
"""Why a reply ended that had no more room in the window: Anthropic, Bedrock and GLM; Mistral."""

# --- names

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HEAD = re.compile(
    # `litellm.BadRequestError: ContextWindowExceededError: ...`, `(context_length_exceeded) ...`, `Code: request_too_large`
    r"(?:^|\n)\W{0,9}(?:(?:error )?code: )?(?:\d{3} (?:- )?)?(?P<names>(?:[\w.]+: )*[\w.]+)(?=[):]|\s*(?:$|\n))",
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
    # The host's own mistakes, whatever they quote.
    r"^(?:Name|Attribute|Import|Key|Type|Syntax)Error$",
    re.IGNORECASE,
)


def names_overflow(name: str) -> bool:
    """Whether a code, type or class name means that a request was too long."""
    words = {word.lower() for word in _WORDS.findall(name)}
    if words & _NOT_INPUT or not words & _OVER:
        return False
    sent = words & _SENT
    # `max_tokens` is what the reply may take; that it is exceeded says nothing of the prompt.
    return bool(sent) and not ("max" in words and sent <= {"token", "tokens"})


def names_another_error(name: str) -> bool:
    """Whether a code, type or class name means an error that has nothing to do with length."""
    return bool(_OTHER_NAMES.search(name))


def identifiers(text: str) -> list[str]:
    """The names at the head of a text, as code writes them: further on, a name may be what the error speaks about."""
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
_OUTPUT = re.compile(
    r"max(?:imum)?[ _]?(?:completion|output|new|generat\w+)?[ _]?tokens?\b|\b(?:output|completion) tokens?\b"
)
_INPUT = re.compile(r"\b(?:context|prompts?|inputs?|messages?|conversation|history|window)\b")
_REFUSED_PARAMETER = re.compile(
    r"\bunrecogni[sz]ed\b|\bnot permitted\b|\binvalid value\b|\bsupported values\b|\bextra inputs\b|\binvalid schema\b"
)
_VALIDATION = re.compile(
    r"\binvalid json\b|\binput should be\b|\btool (?:call )?arguments\b|\bvalidation errors? for\b",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    # What a validation quotes of the request.
    r"""input_value=.*?(?=, input_type=|\]|$)|(?<!\w)'[^\n]*'(?!\w)|(?<!\w)"[^\n]*"(?!\w)""",
    re.DOTALL,
)
_SMALL_WINDOW = re.compile(r"context window\b.{0,60}\btoo small")

_ALIEN = (
    r"image|images|file|files|pdf|pages?|audio|video|url|uri|string|array|name|names|id|ids|call_id|headers?|tools?|"
    r"functions?|schema|enum|propert\w+|metadata|thinking|budget_tokens|stop|rate|time|deadline|connections?|concurren\w*|"
    r"cost|spend|temperature|key|password|username"
)
_GAP = rf"(?:(?!\b(?:{_ALIEN})\b)(?:[^.;!?]|[.](?=\S))){{0,90}}?"
_SPAN = r"(?:[^.;!?]|[.](?=\S)){0,60}?"
_MEASURED = r"(?:'s)?(?: (?:window|length|size|limits?|tokens?|count|budget|body|entity|text|sequence|history|prompt|messages?))*"
_EXCEEDS = (
    r"(?:exceed(?:s|ed|ing)?|surpass(?:es|ed)?|overflow(?:s|ed)?|(?<!must be )(?<!should be )(?:longer|larger|greater|bigger|more|higher) than|over|"
    r"above|beyond|(?:must|should|can) (?:be|have) (?:<=?|≤|at most|less than|fewer than|no more than|below|under|within)|"
    r"(?:must|should|can) ?not (?:be )?(?:exceed|over|above|more than|longer than)|>)"
)
_BOUND = (
    r"(?:context(?: (?:window|length|size|limit|budget|capacity))?|n_ctx|num_ctx|max_(?:model_len|seq_len|sequence_length|total_tokens|input_tokens|input_length|prompt_tokens)|(?:token|prompt|input)s? "
    r"(?:limit|length|size|budget|window|count)|(?:number|amount) of (?:input |prompt )?tokens|(?:message|input|prompt|"
    r"model|total|context) tokens?|(?:context|model) window)"
)
_NUMBER = r"\d[\d,._ ]*[\dk]"
"""Two digits at least: a parameter's range is no window."""

_OVERFLOW = tuple(
    re.compile(pattern)
    for pattern in (
        # The prompt is too long.
        rf"\b(?:context|prompts?|inputs?|messages?|conversation|requests?|payload|chat|history){_MEASURED}(?: \([^)]*\))?"
        r"(?: (?:is|are|was|were|has become|got))?(?: (?:still|far|way|simply))? too (?:long|large|big)\b",
        rf"\b(?:prompts?|inputs?|tokens?|messages?|requests?)\b{_GAP}\btoo (?:long|large|big) (?:for|to fit)\b",
        r"\btoo many (?:input |prompt |context |total )?tokens\b",
        # Something exceeds the context window.
        rf"\b{_EXCEEDS}{_SPAN}\b{_BOUND}\b",
        # The input exceeds something.
        rf"\b(?:context|prompts?|inputs?|tokens|token (?:count|length|usage|size)|sequence)\b{_GAP}[ (]{_EXCEEDS}{_GAP}(?:\b(?:limit|max|maximum|length|allowed|window)\b|{_NUMBER})",
        rf"\b(?:context|prompts?|inputs?|requests?|messages?)\b{_GAP}{_NUMBER} tokens\b{_GAP}\b(?:max|maximum|limit)\b",
        # The context length was exceeded.
        r"\b(?:context|prompt|tokens?|input|n_ctx|model max(?:imum)?)(?:[ _-](?:window|length|size|limit|count|tokens?|budget))*"
        r"[ _-](?:the |has been |have been |was |is |limit )*(?:exceeded|overflow\w*|reached|full)\b",
        # The maximum context length is so many.
        rf"\bmax(?:imum)?(?: \w+)?? (?:context|prompt|input|sequence)(?: (?:length|window|size|limit|tokens?))*(?: (?:is|of|was|are))?"
        rf"(?: only)?[ :=(]+{_NUMBER}",
        rf"\b(?:context|prompt)(?: (?:length|window|size|limit))(?: (?:is|of|was))?(?: only)?[ :=(]+{_NUMBER}",
        rf"\b(?:supports?|accepts?|allows?|takes?)(?: \w+)?? (?:at most|up to|only|a maximum of|no more than) {_NUMBER} ?"
        r"(?:input |prompt |context )?tokens\b",
        rf"\bonly {_NUMBER} tokens\b{_SPAN}\b(?:available|left|context|window)\b",
        # Please shorten it.
        rf"\b(?:reduce|shorten|decrease|trim|truncate|shorter)\b{_SPAN}\b(?:prompt|messages?|input|context|conversation)\b",
        r"\brange of input length\b|\bmalformed input request\b.{0,40}\bmaxlength\b",
        # It does not fit.
        rf"\b(?:not|cannot|can't|doesn't|don't|won't) fit\b{_SPAN}\b(?:context|window)\b",
        # The same in Chinese.
        r"(?:输入|上下文|提示|prompt|tokens?|请求|消息|长度)[^。]{0,20}(?:超出|超过|超长|过长|超限)",
        # The reply found the window full.
        r"\bcontext[ -]shift is disabled\b",
        # A gateway's own answer, without a body.
        r"\b413\b.{0,30}(?:too large|payload|entity|status|no body)|(?:status|code|http)[: ]{1,3}413\b",
        r"^\W*4(?:00|13)(?: status code)? \(no body\)",
    )
)
_TOO_LONG_FIELD = re.compile(
    r"invalid (?P<path>[\w.\[\]]+) ?: ?(?P<kind>string|array) too long.{0,60}?maximum length (?P<limit>\d+)"
)
_NO_ROOM_LEFT = re.compile(r"max_(?:completion_)?tokens must be at least 1, got -(?!1\b)\d")
"""What vLLM makes of the window minus a prompt that is longer. Minus one is what hosts send for `no limit`."""
_LISTS = frozenset(("messages", "input"))
"""Fewer messages make them shorter; a single message's own lists stay as long as they are."""
_TEXT_FIELDS = frozenset(("messages", "input", "prompt", "content", "text", "output", "arguments"))
_TEXT_LIMIT = 10_000
"""No name and no id may be this long: a field with such a limit holds text."""


def says_overflow(text: str) -> bool:
    """Whether a sentence says that what was sent does not fit."""
    said = plain(text)
    field = _TOO_LONG_FIELD.search(_QUOTES.sub(" ", text.lower()))
    if field is not None:
        if field["kind"] == "array":
            return field["path"] in _LISTS
        leaf = re.sub(r"\[\d*\]", "", field["path"]).split(".")[-1]
        return leaf in _TEXT_FIELDS and int(field["limit"]) >= _TEXT_LIMIT
    if _NO_ROOM_LEFT.search(said):
        return True
    if _OUTPUT.search(said) and not _INPUT.search(said):
        return False  # the reply's own limit
    return any(pattern.search(said) for pattern in _OVERFLOW)


def says_another_error(text: str) -> bool:
    """Whether a sentence speaks of a rate, a quota, time, a refused parameter, or a reply that was cut."""
    said = plain(text)
    return any(pattern.search(said) for pattern in (_RATE, _TIME, _FINISH, _SMALL_WINDOW, _REFUSED_PARAMETER))


def plain(text: str) -> str:
    """The text in lower case, without quotes, line breaks and the keys of a body, which differ between transports.

    What a validation quotes of the request is left out: a conversation may speak of an overflow.
    """
    if _VALIDATION.search(text):
        text = _GIVEN.sub(" ", text)
    lower = text.lower().replace("'s ", "s ").replace("input validation error", "validation error")
    return _QUOTES.sub(" ", _KEYS.sub(" ", lower))


_KEYS = re.compile(r"""["']\w+["']\s*:""")
_QUOTES = re.compile(r"(?:\\n|\\|\.{2,}|[\s\"`'“”‘’…])+")
