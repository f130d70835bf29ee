"""Every error that compact raises on purpose, and how a provider's overflow is recognised by its wording.

    CompactError
    ├── ConfigError          a setting is wrong; names the field, what is allowed and what was given
    ├── MessageError         an entry is not a message of its dialect; names the index
    ├── TranscriptError      a file cannot be read as a transcript; names the line
    ├── MissingExtra         an optional part is not installed; gives the install line
    ├── RedactionError       a redaction rule is refused; names the rule and why
    ├── MaskingError         messages could not be masked for the model, so none of them may be sent
    ├── ArchiveError         the archive could not store or return a record
    │   └── OutOfTime        a pass did not end in time, and the messages do not fit as they are
    ├── WindowTooSmall       the model's window cannot hold a working session
    ├── InsufficientBudget   what must stay is larger than the budget
    └── ContextOverflow      the provider refused the request, and nothing smaller is left to try

Each carries `code` (its class name), `hint` (what to do next) and its numbers in `details`, which are also readable as
attributes: `error.index`, `error.budget`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any


class CompactError(Exception):
    """Base of all errors. The message says what happened, with numbers; `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    @property
    def code(self) -> str:
        """A stable name for programs: the name of the class."""
        return type(self).__name__

    def __getattr__(self, name: str) -> Any:
        # While an exception is unpickled, `details` itself is missing.
        details = self.__dict__.get("details", {})
        if name in details:
            return details[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process pools; the default would lose the keyword fields.
        return (_rebuild, (type(self), self.message, self.hint, self.details))


def _rebuild(kind: type[CompactError], message: str, hint: str, details: dict[str, Any]) -> CompactError:
    return kind(message, hint=hint, **details)


class ConfigError(CompactError):
    """A setting is wrong. `path` is the dotted path of the field."""


class MessageError(CompactError):
    """An entry is not a message of its dialect. `index` is its index in the list."""


class TranscriptError(CompactError):
    """A file cannot be read as a transcript. `path` and, if known, `line` say where."""


class MissingExtra(CompactError):
    """An optional part is not installed. `extra` is its name."""

    @classmethod
    def named(cls, extra: str, needed_for: str) -> MissingExtra:
        """Make the error for a missing extra, with the exact line that installs it."""
        return cls(
            f"{needed_for} needs the extra {extra!r}",
            hint=f"Install it with: pip install 'compact-context[{extra}]'",
            extra=extra,
        )


class RedactionError(CompactError):
    """A redaction rule is refused. `rule` is its id."""


class MaskingError(CompactError):
    """Live masking failed, so that nothing may be sent. `reason` says why, without the text that was to be masked."""


class ArchiveError(CompactError):
    """The archive could not store or return a record. `key` names it."""

    @property
    def reason(self) -> str | None:
        """What kind of failure it is, in one word; None if that is not known."""
        reason: str | None = self.details.get("reason")
        return reason


class OutOfTime(ArchiveError):
    """A pass did not end in time, and the messages do not fit as they are. Has `messages` and `timeout_s`.

    Hosts handle it as they handle an archive that hangs: nothing left the context.
    """


class WindowTooSmall(CompactError):
    """The model's window cannot hold a working session. Has `tokens`, `minimum` and `source`."""


class InsufficientBudget(CompactError):
    """What must stay is larger than the budget. Has `budget`, `needed` and a table in `shares`."""


class ContextOverflow(CompactError):
    """The provider refused the request as too long, and nothing smaller is left to try."""


# --- overflow: how providers say that a request is too long
#
# Providers change their sentences, but not their grammar: something that is sent (prompt, input, messages, tokens)
# exceeds, or is too long for, something that bounds it (context window, maximum, limit).
#
# Only the provider's own words count. An error may quote what it was sent, and a tool can have written that.

_LONGEST_ERROR = 20_000
"""Characters of an error that are read."""
_TOLD = re.compile(
    r"""["'](?:message|msg|details?|error|error_?message|raw|reason|description|title|body)["']\s{0,4}:\s{0,4}\Z""",
    re.IGNORECASE,
)
_MARKS = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」"}
_NAMES_OVERFLOW = re.compile(r"exceed|overflow|too_?l(?:ong|arge)", re.IGNORECASE)
_OPENING = re.compile(f"[{''.join(_MARKS)}]")
_AFTER_VALUE = re.compile(
    r"\b(?:input_value|value|content|text|arguments?|payload|string|data|snippet|excerpt) ?[=:]\s(?P<rest>.*?)(?=, input_type=|\Z)",
    re.IGNORECASE | re.DOTALL,
)

_KEYS = re.compile(r"""["']\w+["']\s*:""")
_QUOTES = re.compile(r"(?:\\n|\\|\.{2,}|[\s\"`'“”‘’…])+")
_OUTPUT = re.compile(
    r"max(?:imum)?[ _]?(?:completion|output|new|generat\w+)?[ _]?tokens?\b|\b(?:output|completion) tokens?\b"
)
_INPUT = re.compile(r"\b(?:context|prompts?|inputs?|messages?|conversation|history|window)\b")
_VALIDATION = re.compile(
    r"\binvalid json\b|\binput should be\b|\btool (?:call )?arguments\b|\bvalidation errors? for\b",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    # What a validation error quotes of the request.
    r"""input_value=.*?(?=, input_type=|\]|$)|(?<!\w)'[^\n]*'(?!\w)|(?<!\w)"[^\n]*"(?!\w)""",
    re.DOTALL,
)
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
"""At least two digits: a parameter's range is not a window."""

_OVERFLOW = (
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
    # The maximum context length is 8192.
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
_TOO_LONG_FIELD = re.compile(
    r"invalid (?P<path>[\w.\[\]]+) ?: ?(?P<kind>string|array) too long.{0,60}?maximum length (?P<limit>\d{1,12})(?!\d)"
)
_NO_ROOM_LEFT = re.compile(r"max_(?:completion_)?tokens must be at least 1, got -(?!1\b)\d")
"""vLLM reports the window minus a longer prompt like this. Hosts send -1 to mean `no limit`."""
_LISTS = frozenset(("messages", "input"))
"""Lists that get shorter with fewer messages; lists inside a message do not."""
_TEXT_FIELDS = frozenset(("messages", "input", "prompt", "content", "text", "output", "arguments"))
_TEXT_LIMIT = 10_000
"""A field with this limit or a higher one holds text; names and ids are shorter."""


@cache
def _overflow_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, _OVERFLOW))  # on first use: compiling is slow


def says_overflow(text: str) -> bool:
    """Whether a provider's sentence says that the request is too long."""
    said = plain_wording(text)
    field = _TOO_LONG_FIELD.search(_QUOTES.sub(" ", without_quotations(text).lower()))
    if field is not None:
        if field["kind"] == "array":
            return field["path"] in _LISTS
        leaf = re.sub(r"\[\d*\]", "", field["path"]).split(".")[-1]
        return leaf in _TEXT_FIELDS and int(field["limit"]) >= _TEXT_LIMIT
    if _NO_ROOM_LEFT.search(said):
        return True
    if _OUTPUT.search(said) and not _INPUT.search(said):
        return False  # it speaks of the limit on the reply
    return any(pattern.search(said) for pattern in _overflow_patterns())


def plain_wording(text: str) -> str:
    """Return the text in lower case, without what differs between transports: quotes, line breaks, keys of a body.

    What it quotes is left out, because a conversation may speak of an overflow.
    """
    text = without_quotations(text)
    if _VALIDATION.search(text):
        text = _GIVEN.sub(" ", text)
    lower = text.lower().replace("'s ", "s ").replace("input validation error", "validation error")
    return _QUOTES.sub(" ", _KEYS.sub(" ", lower))


def without_quotations(text: str) -> str:
    """Return the beginning of an error's text without what it quotes: several words in quotation marks, or behind `value:`.

    A single quoted word names a parameter or a model, and what a body tells under `message` is the provider's own. A quotation
    that is never closed was cut off, and reaches to the end.
    """
    text = _without_marked(text[:_LONGEST_ERROR], depth=0)
    return _AFTER_VALUE.sub(lambda given: given.group() if _is_word(given["rest"]) else " ", text)


def _without_marked(text: str, depth: int) -> str:
    pieces: list[str] = []
    start = place = 0
    while (opening := _OPENING.search(text, place)) is not None:
        at = opening.start()
        if opening.group() == "'" and _is_inside_word(text, at - 1):
            place = at + 1  # an apostrophe
            continue
        end = _closing(text, at)
        inside = text[at + 1 : end]
        if _TOLD.search(text, max(0, at - 40), at):
            told = _without_marked(inside, depth + 1) if depth < 2 else " "
            pieces += [text[start : at + 1], told]
            start = end
        elif not _is_word(inside):
            pieces += [text[start:at], " "]
            start = end + 1
        place = end + 1
    return "".join([*pieces, text[start:]])


def _closing(text: str, at: int) -> int:
    """Where the quotation that opens at a place ends; the end of the text if it is never closed."""
    mark = _MARKS[text[at]]
    end = text.find(mark, at + 1)
    while end >= 0:
        is_apostrophe = mark == "'" and _is_inside_word(text, end - 1) and _is_inside_word(text, end + 1)
        if not is_apostrophe and (mark != '"' or text[end - 1] != "\\"):
            return end
        end = text.find(mark, end + 1)
    return len(text)


def _is_inside_word(text: str, place: int) -> bool:
    return 0 <= place < len(text) and (text[place].isalnum() or text[place] == "_")


def _is_word(text: str) -> bool:
    """Whether a quotation is a name. The name of an overflow says one, and only the provider may."""
    return len(text.split()) <= 1 and not _NAMES_OVERFLOW.search(text)
