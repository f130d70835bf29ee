"""JSON text: its leaves are masked where they stand, so that everything else keeps its place and its blanks.

Nothing here recurses: nesting may be as deep as memory allows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing in typeshed, public in CPython since 2.6
from typing import Any

from compact.redaction.fields.values import Fields, is_schema
from compact.redaction.rules.candidates import MASK
from compact.redaction.rules.rule import Rule
from compact.redaction.structure import Masker, Names, is_sealed, rule_by_label

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<string>\")|(?P<open>[{\[])|(?P<close>[}\]])|(?P<mark>[:,])|"
    r"(?P<scalar>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity)(?![\w.]))"
)
_BOM = "\ufeff"
_LONGEST_INT = 4_000
"""Python refuses to read integers much longer; what one is judged by stands at its beginning."""
_SHORT_VALUE = 200


@dataclass(slots=True)
class _Frame:
    """An object or a list."""

    is_object: bool
    name: str | None
    parent: _Frame | None
    shape: dict[str, Any] = field(default_factory=dict)
    """For objects: its names, with the values of those that are short strings."""
    names: Names | None = None
    rule: Rule | None = None
    is_judged: bool = False
    """Whether `rule` is known: that of the nearest name above that has one."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A name or a scalar, and where it stands in the text."""

    start: int
    end: int
    value: Any
    name: str | None
    frame: _Frame
    is_name: bool = False


def looks_like_json(text: str) -> bool:
    """Whether a text is worth reading as JSON: it starts and ends like an object or a list."""
    head = text[:64].removeprefix(_BOM).lstrip()[:1]
    tail = text[-64:].rstrip()[-1:]
    return (head == "{" and tail == "}") or (head == "[" and tail == "]")


def mask_json(text: str, masker: Masker, depth: int) -> tuple[str, int] | None:
    """The text, one JSON value or several in a row, masked, and how many spans were; None when it is no JSON."""
    try:
        leaves = list(_Reader(text).leaves())
    except (ValueError, IndexError):
        return None
    pieces: list[str] = []
    done = 0
    count = 0
    for leaf in leaves:
        mask = _masked_name if leaf.is_name else _masked_leaf
        new, masked = mask(leaf, text[leaf.start : leaf.end], masker, depth)
        if masked:
            pieces += [text[done : leaf.start], new]
            done = leaf.end
            count += masked
    return ("".join([*pieces, text[done:]]), count) if count else (text, 0)


def _masked_name(leaf: _Leaf, source: str, masker: Masker, depth: int) -> tuple[str, int]:
    new, count = masker.mask_text(leaf.value, depth)
    if count:
        leaf.frame.names = leaf.frame.names or Names(leaf.frame.shape)
        new = leaf.frame.names.unused(new)
    return json.dumps(new, ensure_ascii=source.isascii()), count


def _masked_leaf(leaf: _Leaf, source: str, masker: Masker, depth: int) -> tuple[str, int]:
    value = leaf.value
    if value is None or isinstance(value, bool):
        return source, 0
    rule = _rule_of(leaf, masker.fields)
    if rule is not None and masker.masks_leaf(rule, value):
        return json.dumps(rule.replacement), 1
    if not isinstance(value, str):
        return json.dumps(MASK), masker.mask_text(source, depth)[1]
    if is_sealed(leaf.name, value):
        return source, 0
    new, count = masker.mask_text(value, depth)
    return json.dumps(new, ensure_ascii=source.isascii()), count


def _rule_of(leaf: _Leaf, fields: Fields) -> Rule | None:
    if leaf.name is not None:
        rule = fields.rule_for(leaf.name) or rule_by_label(leaf.name, leaf.frame.shape, fields)
        if rule is not None:
            return rule
    return _inherited(leaf.frame, fields)


def _inherited(frame: _Frame | None, fields: Fields) -> Rule | None:
    """The rule of the nearest name above; an object that is a schema has no values to hide."""
    path: list[_Frame] = []
    while frame is not None and not frame.is_judged:
        path.append(frame)
        frame = frame.parent
    rule = frame.rule if frame is not None else None
    for frame in reversed(path):
        rule = (fields.rule_for(frame.name) if frame.name is not None else None) or rule
        frame.rule = rule = None if frame.is_object and is_schema(frame.shape) else rule
        frame.is_judged = True
    return rule


def _read_int(digits: str) -> int:
    return int(digits[:_LONGEST_INT])


class _Reader:
    """Reads JSON text from left to right and remembers where everything stands."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._frame: _Frame | None = None
        self._name: str | None = None
        self._expected = "value"

    def leaves(self) -> Iterator[_Leaf]:
        """Names and scalars, in order.

        Raises:
            ValueError: it is no JSON.
        """
        text = self._text
        position, end = int(text.startswith(_BOM)), len(text.rstrip(" \t\n\r"))
        while position < end:
            token = _TOKEN.match(text, position)
            if token is None:
                raise ValueError("neither a value nor a mark")
            kind = token.lastgroup or ""
            start, position = token.start(kind), token.end()
            if kind == "mark":
                self._pass_mark(token["mark"])
            elif kind == "open":
                self._open(token["open"])
            elif kind == "close":
                self._close(token["close"])
            elif kind == "string":
                value, position = scanstring(text, position, False)
                yield self._string(start, position, value)
            else:
                yield self._scalar(start, position, json.loads(token["scalar"], parse_int=_read_int))
        if self._frame is not None or self._expected != "value":
            raise ValueError("it ends too early")

    def _pass_mark(self, mark: str) -> None:
        if mark == ":" and self._expected == "colon":
            self._expected = "value"
        elif mark == "," and self._expected == "comma" and self._frame is not None:
            self._expected = "name" if self._frame.is_object else "value"
        else:
            raise ValueError(f"{mark!r} where none belongs")

    def _open(self, bracket: str) -> None:
        self._want_value()
        self._frame = _Frame(bracket == "{", self._name, self._frame)
        self._expected = "first name" if self._frame.is_object else "first value"
        self._name = None

    def _close(self, bracket: str) -> None:
        frame = self._frame
        if frame is None or (bracket == "}") != frame.is_object:
            raise ValueError("closed what was not open")
        if self._expected not in ("comma", "first name", "first value"):
            raise ValueError("closed too early")
        self._frame = frame.parent
        self._expected = "comma" if self._frame is not None else "value"

    def _string(self, start: int, end: int, value: str) -> _Leaf:
        if self._expected not in ("name", "first name") or self._frame is None:
            return self._scalar(start, end, value)
        self._name, self._expected = value, "colon"
        self._frame.shape.setdefault(value, None)
        return _Leaf(start, end, value, None, self._frame, is_name=True)

    def _scalar(self, start: int, end: int, value: Any) -> _Leaf:
        self._want_value()
        name, self._name = self._name, None
        if self._frame is None:
            raise ValueError("a scalar outside of objects and lists")
        if name is not None and isinstance(value, str) and len(value) < _SHORT_VALUE:
            self._frame.shape[name] = value
        self._expected = "comma"
        return _Leaf(start, end, value, name, self._frame)

    def _want_value(self) -> None:
        if self._expected not in ("value", "first value"):
            raise ValueError("a value where none belongs")
