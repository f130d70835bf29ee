"""Patterns run on RE2 only, so that matching time is linear in the length of the text for any pattern."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import re2  # type: ignore[import-untyped]

from compact.errors import RedactionError
from compact.redaction.rules.matches import Candidate

MAX_PATTERN_CHARS = 4_000
MAX_PROGRAM = 60_000
"""RE2 instructions. A larger program is slow for every character of the text."""
_MAX_MEMORY_BYTES = 16 << 20

_SYNTAX_HINT = "RE2 has no lookaround and no backreferences; see https://github.com/google/re2/wiki/Syntax"
_NEEDS_REAL_CHARACTERS = re.compile(r"[^\x00-\x7f\x1a]|\\[pPC]|\\x\{|\\x[89a-fA-F]|\\x1[aA]|\\032")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_STAND_IN = "\x1a"
_PROBES = ("", *("".join(pair) for pair in product("a \n", repeat=2)))
"""Every neighbourhood that an assertion can test: a word, a blank, the end of a line, the end of the text."""
_SECRET_GROUP = "(?P<secret>"
_ASSERTION = re.compile(r"\\[bBAz]|[\^$|]|\(\?:|\((?=\))")


def _replace_by_stand_ins(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    return _STAND_IN * (problem.end - problem.start), problem.end


codecs.register_error("compact.stand_in", _replace_by_stand_ins)


def one_byte_per_character(text: str) -> bytes:
    """Encode the text with a stand-in byte for every non-ASCII character, so that byte offsets are text offsets."""
    return text.encode("ascii", "compact.stand_in")


def re2_options(*, longest: bool = False) -> Any:
    """RE2 options: no logging, bounded memory."""
    chosen = re2.Options()
    chosen.log_errors = False
    chosen.max_mem = _MAX_MEMORY_BYTES
    chosen.longest_match = longest
    return chosen


class RulePattern:
    """A compiled pattern whose matches are candidates with offsets in the text."""

    def __init__(self, source: str, *, longest: bool = False) -> None:
        self._regex = re2.compile(source, re2_options(longest=longest))
        groups = self._regex.groupindex
        self._secret_group = groups.get("secret", 0)
        self._key_group = groups.get("key")
        self.needs_real_characters = _NEEDS_REAL_CHARACTERS.search(source) is not None
        """Whether the pattern names non-ASCII characters and so cannot be matched on stand-in bytes."""

    @property
    def program_size(self) -> int:
        """The number of RE2 instructions."""
        return int(self._regex.programsize)

    def occurs_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._regex.search(_LONE_SURROGATES.sub("�", text)) is not None

    def matches_nothing(self) -> bool:
        """Whether the pattern can match without taking a character, in the empty text or between two characters."""
        return any(match.start() == match.end() for probe in _PROBES for match in self._regex.finditer(probe))

    def candidates(self, text: str, shadow: bytes) -> Iterator[Candidate]:
        """Yield every match.

        Args:
            text: the text itself.
            shadow: `one_byte_per_character(text)`, on which most patterns are matched.
        """
        subject: str | bytes = shadow
        if self.needs_real_characters and not text.isascii():
            subject = _LONE_SURROGATES.sub("�", text)
        for match in self._regex.finditer(subject):
            start, end = match.span(self._secret_group)
            if start < 0:
                start, end = match.span()
            key = match.span(self._key_group) if self._key_group is not None else (start, start)
            yield Candidate(text, start, end, match.end(), *key)


@lru_cache(maxsize=2048)
def compile_pattern(rule_id: str, source: str) -> RulePattern:
    """Compile and check a rule's pattern.

    Raises:
        RedactionError: RE2 does not accept the pattern, or it is too large, or it can match without a character.
    """
    if len(source) > MAX_PATTERN_CHARS:
        raise refuse(rule_id, f"its pattern has {len(source)} characters, more than {MAX_PATTERN_CHARS}")
    try:
        pattern = RulePattern(source)
    except re2.error as problem:
        detail = problem.args[0] if problem.args else problem
        reason = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        raise refuse(rule_id, f"RE2 does not accept its pattern: {reason}", _SYNTAX_HINT) from problem
    except UnicodeEncodeError:
        raise refuse(rule_id, "its pattern holds a lone surrogate, which no text can match") from None
    if pattern.program_size > MAX_PROGRAM:
        raise refuse(rule_id, f"its pattern needs {pattern.program_size} steps, more than {MAX_PROGRAM}")
    if pattern.matches_nothing():
        raise refuse(rule_id, "its pattern matches the empty text")
    if _has_empty_secret(source):
        raise refuse(rule_id, "its group `secret` can only be empty, so that it masks nothing")
    return pattern


def _has_empty_secret(source: str) -> bool:
    """Whether the group `secret` contains only assertions."""
    _, group, rest = source.partition(_SECRET_GROUP)
    return bool(group) and _ASSERTION.sub("", rest).startswith(")")


def refuse(
    rule_id: object, reason: str, hint: str = "Write it shorter and without optional parts only"
) -> RedactionError:
    """The error for a rule that cannot be used."""
    message = f"redaction rule {rule_id!r} is refused: {reason}"
    return RedactionError(message, hint=hint, rule=rule_id, reason=reason)
