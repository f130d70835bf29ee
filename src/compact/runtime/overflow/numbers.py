"""Find the limit, the request and the reply's share among the numbers in an error, by the words around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from compact.errors import plain_wording

Role: TypeAlias = Literal["limit", "requested", "input", "output"]

_NUMBER = re.compile(
    # Digits, plain or with thousands separators, optionally followed by k or M; not part of a name or an id.
    r"(?<![\w.#/<-])(?:(?P<grouped>\d{1,3}(?:[,._'\u00a0\u202f]\d{3}){1,3})|(?P<plain>\d{1,12}(?:\.\d{1,6})?))(?P<unit> ?[km](?![\w]))?(?![\w%/]|[-,._]\d)",
    re.IGNORECASE,
)
_OTHER_UNIT = re.compile(
    r"^[ -]?(?:characters?|chars?|bytes?|[kmg]i?b\b|seconds?|secs?\b|s\b|ms\b|minutes?|messages?|requests?|images?|pages?|"
    r"times|items|tools|dollars|turns)"
)
_NOT_TOKENS = re.compile(
    r"(?:status(?: code)?|code|error|http|\$|line|position|column|version|index|by)\W{0,4}$|\b(?:string|array)\b[^.]*$"
)

_OUTPUT_AFTER = re.compile(
    r"^ ?(?:tokens? )?(?:(?:are |is )?(?:in|for|of) (?:the |your )?(?:completion|output|reply|response)|output tokens|"
    r"completion tokens|max_new_tokens|new tokens|tokens of output)"
)
_OUTPUT_BEFORE = re.compile(
    r"(?:max_tokens|max_completion_tokens|max_new_tokens|max_output_tokens|maxoutputtokens)\W{0,4}"
    r"(?: (?:is|of|value|are|was|too large|or)|[:=]| )*$"
)
_INPUT_AFTER = re.compile(
    r"^\)? ?(?:tokens? )?(?:input tokens|prompt tokens|inputs tokens|in (?:the |your )?(?:messages?|prompt|input|functions)|"
    r"(?:tokens )?from the input|of (?:text|tool|image) input|inputs? tokens)|^\)? ?(?:input |prompt )?tokens?\)? "
    r"(?:>|exceeds?\b|is (?:too|longer|larger|more|greater)|were|which|(?:does|do|will|can) ?not fit)|^\)? ?(?:exceeds?\b|is longer|>)"
)
_LIMIT_AFTER = re.compile(
    r"^\]?\)?[ -](?:tokens? )?(?:-?token )?(?:maximum|max\b|limit|context|window|is the (?:maximum|limit)|allowed|available|"
    r"token limit|token context|token window)"
)
_LIMIT_BEFORE = re.compile(
    r"\b(?:max|maximum|limit|allowed|range)(?: (?:number|of|input|prompt|context|tokens?|length|size|window|is|was|should|be|allowed))*"
    r" ?[(:=]* ?(?:\[\d+, )?$"
)
_CUES: tuple[tuple[Role, re.Pattern[str]], ...] = (
    (
        "limit",
        re.compile(
            r"maximum|\bmax\b|limits?\b|allowed|window|context (?:length|size)|n_ctx|max_model_len|at most|up to|less than|"
            r"fewer than|exceeds?\b|must be|<=?|cannot|> ?$|supports?|only|range|no more than|capacity|than|context of|fit in"
        ),
    ),
    (
        "requested",
        re.compile(
            r"requested|resulted in|contains?|\bhas\b|\bhave\b|\bgot\b|received|given|supplied|provided|sent|"
            r"(?<!max )(?<!maximum )(?:current|total|prompt|input) (?:length|size)|(?:prompt|input) ?[=:]|count(?: of)?|total of|totals?\b|used|actual|need(?:s|ed)?\b|"
            r"your (?:prompt|request|messages?|input)|the (?:prompt|input|request)\b|too (?:long|large)|first|tokens? \($|"
            r"n_prompt_tokens|were|input \($|prompt \($|requires?"
        ),
    ),
)
_SUM = re.compile(
    r"(?<!\d)(?P<input>\d{1,12}) ?\+ ?(?P<output>\d{1,12}) ?(?:>|=\s*\d{1,12} ?>) ?(?P<limit>\d{1,12})(?!\d)"
)
_DIGITS = re.compile(r"(?<![^\W_])\d{2,12}(?![^\W_])")
_STATUSES = range(400, 600)
_SENTENCE_START = re.compile(r"(?:^|[.;!?>])\W*$")
_LEAST_TOKENS = 64
"""Smaller numbers in such sentences are indexes, message counts or the lower end of a range."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a text says, in tokens."""

    limit: int | None = None
    requested: int | None = None
    output: int | None = None


def read(text: str) -> Numbers:
    """Read the numbers in an error's text. Contradictory ones (a request within its limit) are left out."""
    said = plain_wording(text)
    if "maxlength" in said:
        return Numbers()  # a JSON Schema keyword, counted in characters
    added = _SUM.search(said.replace(",", ""))
    if added is not None:
        output = int(added["output"])
        return Numbers(int(added["limit"]), int(added["input"]) + output, output)
    found: dict[Role, list[int]] = {"limit": [], "requested": [], "input": [], "output": []}
    matches = [match for match in _NUMBER.finditer(said) if _value(match) >= _LEAST_TOKENS]
    end = 0
    for place, match in enumerate(matches):
        following = matches[place + 1].start() if place + 1 < len(matches) else len(said)
        before, after = said[max(end, match.start() - 80) : match.start()], said[match.end() : following]
        end = match.end()
        role, value = _role(before, after[:60]), _value(match)
        # Errors repeat numbers and add them up.
        known = any(value in values for values in found.values())
        if role is None or known or (value in _STATUSES and _SENTENCE_START.search(before)):
            continue
        if role == "limit" and before.endswith("limit (") and "token" not in said:
            continue  # the number of the error, in brackets
        found[role].append(value)
    return _settle(found)


def values_in(text: str) -> set[int]:
    """Return every number that stands in a text, whatever it means there."""
    return {_value(match) for match in _NUMBER.finditer(text)} | {int(each) for each in _DIGITS.findall(text)}


def _settle(found: dict[Role, list[int]]) -> Numbers:
    output = found["output"][0] if found["output"] else None
    parts = sum(found["input"]) + (output or 0) if found["input"] else None
    requested = max(found["requested"], default=parts)
    limits = found["limit"]
    limit = next((value for value in limits if requested is None or value < requested), None)
    if limit is None and limits and requested is not None:
        # The input alone fits, but not together with the reply's share.
        limit, requested = limits[0], requested + (output or 0)
        if requested <= limit:
            requested = None
    return Numbers(limit, requested, output)


def _role(before: str, after: str) -> Role | None:
    if _OTHER_UNIT.match(after) or _NOT_TOKENS.search(before):
        return None
    if _OUTPUT_AFTER.match(after) or _OUTPUT_BEFORE.search(before):
        return "output"
    if _INPUT_AFTER.match(after):
        return "input"
    if _LIMIT_BEFORE.search(before):
        return "limit"
    nearest: tuple[int, Role] | None = None
    sentence = re.split(r"[.;!?] ", before)[-1]
    for role, cue in _CUES:
        for match in cue.finditer(sentence):
            if nearest is None or match.end() > nearest[0]:
                nearest = (match.end(), role)
    if _LIMIT_AFTER.match(after) and (
        nearest is None or nearest[1] == "limit" or len(sentence) - nearest[0] > 3
    ):
        return "limit"
    return nearest[1] if nearest else None


def _value(match: re.Match[str]) -> int:
    digits = re.sub(r"\D", "", match["grouped"]) if match["grouped"] else match["plain"]
    unit = (match["unit"] or "").strip().lower()
    return int(float(digits) * {"": 1, "k": 1_000, "m": 1_000_000}[unit])
