"""Reading the value that follows a field's name, in code, JSON, YAML, INI, shell, XML, tables and prose."""

from __future__ import annotations

import re
from typing import NamedTuple

from compact.redaction.shapes import is_prose

_LONGEST_QUOTED = 4_096
_LONGEST_BARE = 1_024
_LONGEST_GAP = 201

_OPENER = re.compile(r"([rRbBuUfF@$]{0,2})(\\*)(\"\"\"|'''|[\"'`“‘]|&quot;|&#3[49];|&apos;)")
_CLOSES = {"“": "”", "‘": "’"}
_UNESCAPED = {quote: re.compile(rf"(?:[^{quote}\\\n]++|\\.)*+{quote}") for quote in ('"', "'")}
# A backslash before n, r, t or a quote escapes a character of an enclosing string; the value ends there.
_TO_SPACE = re.compile(r"(?:[^\s\"'`<\\\x1b]++|\\(?![nrt\"']))++")
_TO_DELIMITER = re.compile(r"(?:[^\s\"'`<>,;&|(){}\[\]\\\x1b]++|\\(?![nrt\"']))++")
_PAIR_END = {
    '"': re.compile(r"(?:[^\s\"\\]++|\\[^\s])++\""),
    "'": re.compile(r"(?:[^\s']++|'')++'(?!')"),
}
_JOINED = re.compile(r"(?:'[^'\n]{0,400}'|\"[^\"\n]{0,400}\")+")
"""More strings without a gap: a doubled quote in YAML and SQL, a quoted quote in a shell."""
_TO_END_OF_WORD = re.compile(r"[^\s\x1b]++")
_TO_AMPERSAND = re.compile(r"[^\s&#\"'`<>\\]++")
_TO_SEMICOLON = re.compile(
    r"\{(?:[^}\n]|\}\}){1,400}\}(?=;|\"|\s|\Z)|(?:[^\s;\"\\]++|\"(?![\s,:;)}\]]|\Z)|\\(?![nrt\"]|\\))++|(?:[^\s;\"\\]++|\\\\|\\\")++"
)
_LONGEST_PAIR = 120
_AFTER_PART = re.compile(r"=[^;\n]{0,100};[ \t]?\Z")
_BEFORE_PART = re.compile(r"[^\s;\"']{1,200};[A-Za-z][\w ]{0,40}=")
_AFTER_PAIR = re.compile(r"(?:\A|[\s\"'])[A-Za-z_]{2,30}=(?:'[^'\n]{0,80}'|[^\s\"']{0,80}) \Z")
_ANNOTATION = re.compile(
    r"[ \t]*(?:&|\*|const\b|readonly\b|final\b|typing\.|t\.|std::)*[ \t]*"
    r"(?:str|string|String|bytes|Optional|Union|Secret\w*|char|Any|any|text|varchar|Option|Annotated|static)\b"
    r"[\w\[\]<>|?&.'\" ,*]{0,60}?=(?![=>])[ \t]*"
)
_REGEX_MARKS = re.compile(r"\\[dwsWSDb]|\(\?|\[\^")
_SURELY_REGEX = re.compile(r"\(\?[:=!P]|\[[^\]]{0,40}(?:0-9|a-[fz]|A-[FZ])[^\]]{0,40}\][+*{]?|\Ar[\"']")
_BLOCK_SCALAR = re.compile(r"[|>][-+]?[ \t]*\r?\n")
_NEXT_LINE = re.compile(r"[ \t]*(?:[|>][-+]?)?[ \t]*\r?\n[ \t]*(?=[^\s]+[ \t]*(?:\r?\n|\Z))")
_BLANKS_AND_BLOCK = re.compile(r"[ \t]{0,200}[|>][-+]?[ \t]{0,200}\r?\n")
_INDENTED_LINE = re.compile(r"(?:[ \t]{0,200}\r?\n){0,4}([ \t]{1,200})[^\s][^\n]*+(?:\n|\Z)")
_PLAIN_WORD = re.compile(r"[a-z]{2,20}")
_MORE_WORDS = re.compile(r"((?:[ \t][a-z]{2,20}){2,9})[ \t]{0,8}(?:\r?\n|\Z)")
_CELL = re.compile(r"[ \t]*[`*]{0,2}([^|\n]{1,400}?)[`*]{0,2}[ \t]*\|")
_ELEMENT = re.compile(r"\s{0,20}(?:<!\[CDATA\[)?([^\s<](?:[^<\n]{0,1000}[^\s<\]])?)(?:\]\]>)?\s{0,20}(?=</)")
_BLANKS_AND_BOLD = re.compile(r"\*{0,2}[ \t]{0,200}\*{0,2}(?:\x1b\[[\d;]{0,12}m)?")
_LINE_HEAD = re.compile(
    r"[\s#/*>+-]*(?:(?:export|set|setx|env|ENV|ARG|let|var|const|declare|local|readonly|\$)\s+)*[\w.:/\\@\"'$-]*\Z"
)
_LINE_REST = re.compile(r"[,;]?[ \t]*(?:(?:#|//)[^\n]{0,400})?(?:\n|\r|\Z)")


class Value(NamedTuple):
    """A value and its place in the text."""

    start: int
    end: int
    text: str
    quoted: bool
    template: bool = False
    """Whether it has holes that are filled later: an f-string, a template literal, a regular expression."""
    follower: str = ""
    """The first character after it that is not blank."""
    alone: bool = False
    """Whether the line holds only the name and the value, as in settings files."""
    framed: bool = False
    """Whether it is a part of a connection string or of a query, whose parts are values."""


def read_value(
    text: str, name_start: int, position: int, *, annotated: bool = False, word: bool = False
) -> Value | None:
    """Read the value that starts at `position`. Return None if there is none.

    Args:
        text: the text.
        name_start: where the name begins, to see whether name and value are alone on their line.
        position: just after the operator.
        annotated: whether a type may come before the value (`password: str = "..."`).
        word: whether an unquoted value extends to the next blank, as in a command.
    """
    if annotated:
        note = _ANNOTATION.match(text, position, position + 120)
        position = note.end() if note else position
    part = _read_framed(text, name_start, position) or _read_quoted_pair(text, name_start, position)
    if part is not None:
        return part
    position = _BLANKS_AND_BOLD.match(text, position).end()  # type: ignore[union-attr]  # it always matches
    opener = _OPENER.match(text, position)
    if opener:
        start, end = opener.end(), _find_closing_quote(text, opener)
        if end >= 0:
            joined = _JOINED.match(text, end + 1) if not opener[2] and opener[3] in "\"'" else None
            end = joined.end() - 1 if joined else end
            prefix, value = opener[1].lower(), text[start:end]
            has_holes = ("f" in prefix or "$" in prefix or opener[3] == "`") and "{" in value
            has_pattern = ("r" in prefix and _REGEX_MARKS.search(value) is not None) or is_regex(value)
            behind = end + len(opener[2] + opener[3])
            is_setting = _is_alone(text, name_start, behind)
            return Value(
                start, end, value, True, has_holes or has_pattern, _find_follower(text, behind), is_setting
            )
        position = start
    return _read_bare(text, name_start, position, word)


def is_regex(value: str) -> bool:
    """Whether a value is surely a regular expression: it has a class of characters or a special group."""
    return _SURELY_REGEX.search(value) is not None


def read_cell(text: str, position: int) -> Value | None:
    """Read the cell of a Markdown table that starts at `position`."""
    cell = _CELL.match(text, position)
    return Value(cell.start(1), cell.end(1), cell[1], True, follower="|") if cell else None


def read_element(text: str, position: int) -> Value | None:
    """Read the content of an XML element that starts at `position`."""
    content = _ELEMENT.match(text, position)
    return (
        Value(content.start(1), content.end(1), content[1], False, follower="<", alone=True)
        if content
        else None
    )


def read_next_line(text: str, position: int) -> Value | None:
    """Read the value that is alone on the line after a name and its operator."""
    line = _NEXT_LINE.match(text, position)
    return _read_bare(text, line.end(), line.end(), word=True) if line else None


def read_block(text: str, position: int) -> Value | None:
    """Read the YAML block scalar whose mark is at `position`: all lines indented at least like its first."""
    mark = _BLANKS_AND_BLOCK.match(text, position)
    first = _INDENTED_LINE.match(text, mark.end(), mark.end() + _LONGEST_QUOTED) if mark else None
    if first is None:
        return None
    start, end = first.end(1), first.end()
    limit = min(len(text), start + _LONGEST_QUOTED)
    while end < limit:
        line = _INDENTED_LINE.match(text, end, limit)
        if line is None or len(line[1]) < len(first[1]):
            break
        end = line.end()
    end = start + len(text[start:end].rstrip())
    return Value(start, end, text[start:end], True, alone=True)


def find_end(text: str, value: Value, *, phrase: bool) -> int:
    """Find where a secret value really ends. Reading stops early, so that values that are not secrets cost little.

    Args:
        text: the text.
        value: what was read.
        phrase: whether plain words up to the end of the line belong to the value, as in a passphrase.
    """
    if value.quoted:
        return value.end
    if value.end - value.start >= _LONGEST_BARE - 1:
        rest = _TO_SPACE.match(text, value.end)
        return rest.end() if rest else value.end
    words = _MORE_WORDS.match(text, value.end) if phrase and _PLAIN_WORD.fullmatch(value.text) else None
    return words.end(1) if words and not is_prose(text[value.start : words.end(1)]) else value.end


def _find_closing_quote(text: str, opener: re.Match[str]) -> int:
    """The position of the value's closing quote, or -1 if there is none nearby."""
    slashes, quote, start = opener[2], opener[3], opener.end()
    close = slashes + _CLOSES.get(quote, quote)
    limit = min(len(text), start + _LONGEST_QUOTED)
    end = text.find(close, start, limit)
    if end >= 0 and quote in _UNESCAPED and not slashes:
        found = _UNESCAPED[quote].match(text, start, limit)
        end = found.end() - 1 if found else -1
    may_span_lines = len(quote) == 3 or quote == "`"
    return end if may_span_lines or text.find("\n", start, max(start, end)) < 0 else -1


def _read_bare(text: str, name_start: int, start: int, word: bool) -> Value | None:
    limit = min(len(text), start + _LONGEST_BARE)
    whole = _TO_SPACE.match(text, start, limit)
    if _BLOCK_SCALAR.match(text, start):
        return None
    line = _TO_END_OF_WORD.match(text, start, limit)
    if (
        line is not None
        and _is_alone(text, name_start, line.end())
        and not _is_inside_string(text, name_start)
    ):
        end = start + len(line.group().rstrip(",;"))
        return Value(start, end, text[start:end], False, False, _find_follower(text, end), True)
    if whole is None:
        return None
    alone = _is_alone(text, name_start, whole.end())
    if alone or word:
        end = start + len(whole.group().rstrip(",;>"))
    else:
        part = _TO_DELIMITER.match(text, start, limit)
        if part is None:
            return Value(start, start, whole.group(), False, follower=whole.group()[0])
        end = start + len(part.group().rstrip(".:\\"))
    return Value(start, end, text[start:end], False, False, _find_follower(text, end), alone)


def _read_quoted_pair(text: str, name_start: int, start: int) -> Value | None:
    """Read the value of a setting that is quoted as a whole: `"NAME=value"`."""
    quote = text[name_start - 1 : name_start]
    if text[start - 1 : start] != "=" or quote not in _PAIR_END:
        return None
    found = _PAIR_END[quote].match(text, start, start + _LONGEST_BARE)
    if found is None:
        return None
    end = found.end() - 1
    return Value(start, end, text[start:end], False, False, quote, alone=True)


def _read_framed(text: str, name_start: int, start: int) -> Value | None:
    """Read a part of a connection string (`;Pwd=...;`, ` password=... host=`) or of a query (`&password=...&`)."""
    if text[start - 1 : start] != "=" or text.startswith(('"', "'", '\\"', "\\'"), start):
        return None
    before = text[max(0, name_start - _LONGEST_PAIR) : name_start]
    if before.endswith(("?", "&")):
        pattern = _TO_AMPERSAND
    elif _AFTER_PART.search(before) or _BEFORE_PART.match(text, start):
        pattern = _TO_SEMICOLON
    elif _AFTER_PAIR.search(before):
        pattern = _TO_SPACE
    else:
        return None
    found = pattern.match(text, start, start + _LONGEST_BARE)
    if found is None:
        return None
    begin, end = found.span()
    if text[begin] == "{" and text[end - 1] == "}":
        begin, end = begin + 1, end - 1
    return Value(begin, end, text[begin:end], False, False, _find_follower(text, found.end()), framed=True)


def _is_inside_string(text: str, name_start: int) -> bool:
    """Whether a string or a tag opens before the name on its line, which may end before the line does."""
    line_start = text.rfind("\n", max(0, name_start - 200), name_start) + 1
    head = text[max(line_start, name_start - 200) : name_start]
    return any(mark in head for mark in "\"'`<\\")


def _is_alone(text: str, name_start: int, end: int) -> bool:
    if _LINE_REST.match(text, end) is None:
        return False
    line_start = text.rfind("\n", max(0, name_start - 200), name_start) + 1
    return name_start - line_start < 200 and _LINE_HEAD.match(text[line_start:name_start]) is not None


def _find_follower(text: str, end: int) -> str:
    return text[end : end + _LONGEST_GAP].lstrip(" \t")[:1]
