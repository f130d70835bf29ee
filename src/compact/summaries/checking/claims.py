"""The exact things that a text names: paths, ids, numbers. And whether its source contains them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from compact.messages import Message, Reasoning, Refusal, Text, ToolCall, ToolResult

_EXTENSIONS = (
    "bash bat bib c cc cfg conf cpp cs css csv cxx dart db diff docx ejs env erl ex exs fish go gradle graphql gz h "
    "hbs hh hpp hs htm html ini ipynb java jinja jinja2 jl jpeg jpg js json jsonl jsx kt less lock log lua md mdx "
    "mjs ml mod odt parquet patch pdf php pl plist png pony pptx proto ps1 py pyi pyx r rb rs rst sass scala scss sh "
    "sql sqlite srt sum svelte svg swift tar tex toml traj ts tsv tsx txt vue webp whl xls xlsx xml yaml yml zig zip zsh"
)
_FILE_NAME = re.compile(rf"[\w@+-][\w.@+-]*\.(?:{'|'.join(_EXTENSIONS.split())})", re.IGNORECASE)
_PRODUCTS = frozenset(
    {"node.js", "next.js", "vue.js", "react.js", "express.js", "nuxt.js", "d3.js", "three.js"}
)
_TOKEN = re.compile(r"[^\s`'\"()\[\]<>|,;=]+")
_CLOSING_TAG = re.compile(r"</\w+>")
_PLACE = re.compile(r"(?::\d+)+$|#L\d+(?:-L?\d+)?$")
_PATTERN_SIGNS = frozenset("*{}$…")
_WORD = re.compile(r"[\w@+-][\w.@+-]*")
_ESCAPES = re.compile(r"\\[ntr\"/]")

_UUID = r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
_HEX = r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"
_TICKET = r"\b[A-Z][A-Z0-9]{1,9}-\d+\b"
_MIXED = r"(?<![\w-])#?(?=[\w-]*[A-Za-z])(?=(?:[\w-]*?\d){3})[A-Za-z0-9_-]{6,}(?![\w-])"
_ID = re.compile(rf"{_UUID}|{_HEX}|{_TICKET}|{_MIXED}")
_MEASURE = re.compile(r"\d[\d_]*-?(?:[a-z]{1,3}|[a-z]+)", re.IGNORECASE)
"""A number with its unit or the thing it counts: `5000ms`, `1000-line`."""
_STANDARD = re.compile(
    r"(?:utf|sha|iso|rfc|gpt|http|aes|rsa|pep|base|int|uint|float|cp|es|md)[-_]?\d+\w*", re.IGNORECASE
)

_NUMBER = re.compile(r"\d+(?:[,_]\d{3})*(?:\.\d+)?")
_LABELLED = re.compile(
    r"(?:\b(?:lines?|ports?|exit (?:code|status)|status(?: code)?|errno|error(?: code)?|issues?|pr|pull request|ticket|"
    r"order|version|row|column|page|pid|id)[\s:]{1,2}#?|(?<![\w&])#|\bv)(\d+(?:[,_]\d{3})*(?:\.\d+)?)\b",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"\d{1,3}\.\d{3}")
"""A number as many languages group it: `48.151` for 48,151."""
_LONG_NUMBER = 4
"""A number with this many digits is a claim on its own; a shorter one only if it is labelled."""


def words_of(message: Message) -> Iterator[str]:
    """Everything readable in a message: text, calls with their arguments, results."""
    for part in message.parts:
        if isinstance(part, Text | Reasoning | Refusal):
            yield part.text
        elif isinstance(part, ToolCall):
            yield f"{part.name} {part.id} {part.arguments_text}"
        elif isinstance(part, ToolResult):
            yield part.text


def paths_in(text: str) -> list[str]:
    """The file paths, file names and addresses in a text, in order."""
    return list(
        dict.fromkeys(
            path for token in _TOKEN.findall(_CLOSING_TAG.sub(" ", text)) if (path := _as_path(token))
        )
    )


def ids_in(text: str) -> list[str]:
    """Hashes, UUIDs, ticket numbers and other names with digits in them, in order."""
    found = []
    for match in _ID.finditer(text):
        name = match.group().lstrip("#")
        if not name.isdigit() and not _MEASURE.fullmatch(name) and not _STANDARD.fullmatch(name):
            found.append(name)
    return list(dict.fromkeys(found))


def numbers_in(text: str) -> list[str]:
    """The numbers that are claims, without separators: labelled ones, and those of four digits or more."""
    labelled = [_plain_number(match.group(1)) for match in _LABELLED.finditer(text)]
    long = [
        plain
        for match in _NUMBER.finditer(text)
        if not _touches_word(text, match) and _digits(plain := _plain_number(match.group())) >= _LONG_NUMBER
    ]
    return list(dict.fromkeys([*labelled, *long]))


class SourceText:
    """The text that a summary is about, indexed so that lookups are fast however long it is."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = "\n".join(texts)

    @classmethod
    def of(cls, messages: Sequence[Message], *others: str) -> SourceText:
        """The source made of these messages and other texts."""
        return cls([*(text for message in messages for text in words_of(message)), *others])

    def find_invented(self, sentence: str) -> list[str]:
        """The paths, ids and numbers in a sentence that are not in the source, as the sentence spells them."""
        paths = paths_in(sentence)
        missing = [path for path in paths if not self._has_path(path)]
        rest = _without(sentence, paths)
        ids = ids_in(rest)
        missing += [name for name in ids if name.lower() not in self._lower]
        rest = _without(rest, ids)
        missing += [number for number in numbers_in(rest) if not self._has_number(number)]
        return missing

    @cached_property
    def _lower(self) -> str:
        plain = self.text.lower().replace("\\\\", "/").replace("\\/", "/")
        return plain.replace("\\", "/")

    @cached_property
    def _words(self) -> frozenset[str]:
        spaced = _ESCAPES.sub(" ", self.text.lower())
        return frozenset(
            word.rstrip(".") for text in (self.text.lower(), spaced) for word in _WORD.findall(text)
        )

    @cached_property
    def _numbers(self) -> frozenset[str]:
        found = {_plain_number(number) for number in _NUMBER.findall(self.text)}
        return frozenset(found | set(re.findall(r"\d+", self.text)))

    def _has_path(self, path: str) -> bool:
        wanted = path.lower().replace("\\", "/").strip("/")
        while wanted.startswith(("./", "../", "~/")):
            wanted = wanted.partition("/")[2]
        parts = [part for part in wanted.split("/") if part]
        if not parts or self._has_part(wanted):
            return True
        # A folder and a file that the source names separately (`cd src`, `open a.py`) may be named together.
        joined = (("/".join(parts[:n]), "/".join(parts[n:])) for n in range(1, len(parts)))
        if any(self._has_part(head) and self._has_part(tail) for head, tail in joined):
            return True
        is_choice = not _FILE_NAME.fullmatch(parts[-1]) and not path.startswith(("/", "~", "."))
        return (is_choice or all(map(_FILE_NAME.fullmatch, parts))) and all(map(self._has_part, parts))

    def _has_part(self, part: str) -> bool:
        return part in self._lower if "/" in part else part in self._words

    def _has_number(self, number: str) -> bool:
        if number in self._numbers or (
            _GROUPED.fullmatch(number) and number.replace(".", "") in self._numbers
        ):
            return True
        whole, point, decimals = number.partition(".")
        if not point:
            return False
        # A rounded number is fine: 0.8534 for 0.85342.
        close = 0.5 * 10 ** -len(decimals) + 1e-12
        value = float(number)
        return any(
            abs(float(other) - value) <= close
            for other in self._numbers
            if other.startswith(whole[:1]) and "." in other
        )


def _as_path(token: str) -> str:
    """The token as a path or address, without a line number behind it; empty if it is none."""
    token = _PLACE.sub("", token.strip("*_").rstrip(".:!?*_")).rstrip(".:")
    if not token or _PATTERN_SIGNS.intersection(token) or "..." in token:
        return ""
    if "://" in token:
        return token.partition("://")[2].rstrip("/")
    slashed = token.replace("\\", "/")
    if "/" not in slashed:
        return token if _FILE_NAME.fullmatch(token) and token.lower() not in _PRODUCTS else ""
    if not re.search(r"[A-Za-z]{2}", token):
        return ""
    rooted = slashed.startswith(("/", "./", "../", "~/"))
    named = _FILE_NAME.fullmatch(slashed.rstrip("/").rpartition("/")[2]) is not None
    return token if rooted or named or slashed.strip("/").count("/") > 1 else ""


def _without(text: str, names: Sequence[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, " ")
    return text


def _touches_word(text: str, match: re.Match[str]) -> bool:
    before = text[match.start() - 1 : match.start()]
    return before.isalnum() or before in ("_", ".")


def _plain_number(text: str) -> str:
    return text.replace(",", "").replace("_", "")


def _digits(text: str) -> int:
    return sum(char.isdigit() for char in text)
