"""RE2, and nothing but RE2: time grows with the text, whatever the pattern and whoever wrote it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import re2  # type: ignore[import-untyped]

from compact.errors import RedactionError

MAX_PATTERN_CHARS = 4_000
MAX_PROGRAM = 60_000
"""RE2 instructions. More makes matching slow per character, not per pattern."""
_MEMORY = 16 << 20

_SYNTAX = "RE2 has no lookaround and no backreferences; see https://github.com/google/re2/wiki/Syntax"
_NEEDS_REAL_CHARACTERS = re.compile(r"[^\x00-\x7f\x1a]|\\[pPC]|\\x\{|\\x[89a-fA-F]|\\x1[aA]|\\032")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_STAND_IN = "\x1a"
_PROBES = ("", *("".join(pair) for pair in product("a \n", repeat=2)))
"""Every neighbourhood that an assertion can ask for: a word, a blank, a line's end, the text's."""
_SECRET_GROUP = "(?P<secret>"
_ASSERTION = re.compile(r"\\[bBAz]|[\^$|]|\(\?:|\((?=\))")


def _stand_ins(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    return _STAND_IN * (problem.end - problem.start), problem.end


codecs.register_error("compact.stand_in", _stand_ins)


def one_byte_per_character(text: str) -> bytes:
    """The text with a stand-in byte for every character outside ASCII: an offset in it is an offset in the text."""
    return text.encode("ascii", "compact.stand_in")


def options(*, longest: bool = False) -> Any:
    """RE2's settings: quiet, bounded memory."""
    chosen = re2.Options()
    chosen.log_errors = False
    chosen.max_mem = _MEMORY
    chosen.longest_match = longest
    return chosen


class Pattern:
    """A compiled pattern that gives offsets in the text, and the span of the group that is masked."""

    __slots__ = ("_exact", "_key_group", "_regex", "_secret_group")

    def __init__(self, source: str, *, longest: bool = False) -> None:
        self._regex = re2.compile(source, options(longest=longest))
        groups = self._regex.groupindex
        self._secret_group = groups.get("secret", 0)
        self._key_group = groups.get("key")
        self._exact = _NEEDS_REAL_CHARACTERS.search(source) is not None

    @property
    def program_size(self) -> int:
        """How many instructions RE2 needs for it."""
        return int(self._regex.programsize)

    def search(self, text: str) -> Any:
        """The first match, or None."""
        return self._regex.search(_LONE_SURROGATES.sub("�", text))

    def matches_nothing(self) -> bool:
        """Whether it has a match without a character: in the empty text, or between any two characters."""
        return any(match.start() == match.end() for probe in _PROBES for match in self._regex.finditer(probe))

    @property
    def needs_real_characters(self) -> bool:
        """Whether it speaks of characters outside ASCII, and so cannot be matched on stand-ins."""
        return self._exact

    def spans(self, text: str, shadow: bytes) -> Iterator[tuple[int, int, int, int, int]]:
        """Each match as (start of the secret, its end, end of the match, start of the group `key`, its end).

        Args:
            text: the text itself.
            shadow: what `one_byte_per_character` made of it; most patterns are matched on this.
        """
        subject: str | bytes = shadow
        if self._exact and not text.isascii():
            subject = _LONE_SURROGATES.sub("�", text)
        for match in self._regex.finditer(subject):
            start, end = match.span(self._secret_group)
            if start < 0:
                start, end = match.span()
            key_start, key_end = (
                match.span(self._key_group) if self._key_group is not None else (start, start)
            )
            yield start, end, match.end(), key_start, key_end


def compile_pattern(rule_id: str, source: str) -> Pattern:
    """The pattern, ready to use.

    Raises:
        RedactionError: RE2 refuses it, it is too large, or it matches the empty text.
    """
    if len(source) > MAX_PATTERN_CHARS:
        raise _refused(rule_id, f"its pattern has {len(source)} characters, more than {MAX_PATTERN_CHARS}")
    try:
        pattern = Pattern(source)
    except re2.error as problem:
        detail = problem.args[0] if problem.args else problem
        reason = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        raise _refused(rule_id, f"RE2 does not accept its pattern: {reason}", _SYNTAX) from problem
    except UnicodeEncodeError:
        raise _refused(rule_id, "its pattern holds a lone surrogate, which no text can match") from None
    if pattern.program_size > MAX_PROGRAM:
        raise _refused(rule_id, f"its pattern needs {pattern.program_size} steps, more than {MAX_PROGRAM}")
    if pattern.matches_nothing():
        raise _refused(rule_id, "its pattern matches the empty text")
    if _is_hollow(source):
        raise _refused(rule_id, "its group `secret` can only be empty, so that it masks nothing")
    return pattern


def _is_hollow(source: str) -> bool:
    """Whether the group that is masked has nothing in it but assertions."""
    head = source.find(_SECRET_GROUP)
    if head < 0:
        return False
    left = _ASSERTION.sub("", source[head + len(_SECRET_GROUP) :])
    return left.startswith(")")


def _refused(
    rule_id: str, reason: str, hint: str = "Write it shorter and without optional parts only"
) -> RedactionError:
    message = f"redaction rule {rule_id!r} is refused: {reason}"
    return RedactionError(message, hint=hint, rule=rule_id, reason=reason)
