"""JSON text: leaves are masked in place, and everything else keeps its bytes.

Nothing here recurses, so nesting may be as deep as memory allows.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing in typeshed, public in CPython since 2.6
from typing import Any, Literal, TypeAlias

from compact.redaction.data import FreeNames, Masker, mask_leaf, rule_after_flag
from compact.redaction.fields.names import is_schema, nearest_rule, rule_in_object
from compact.redaction.rules.rule import Rule

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<string>\")|(?P<open>[{\[])|(?P<close>[}\]])|(?P<colon>:)|(?P<comma>,)|"
    r"(?P<scalar>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity)(?![\w.]))"
)
_Expected: TypeAlias = Literal["value", "first value", "name", "first name", "colon", "comma"]
_ALLOWED: dict[_Expected, tuple[str, ...]] = {
    "value": ("string", "scalar", "open"),
    "first value": ("string", "scalar", "open", "close"),
    "name": ("string",),
    "first name": ("string", "close"),
    "colon": ("colon",),
    "comma": ("comma", "close"),
}
_BOM = "\ufeff"
_LONGEST_INT = 4_000
"""Python refuses to read integers much longer than this. The first digits are enough to judge one."""
_SHORT_VALUE = 200


@dataclass(slots=True)
class _Frame:
    """An object or a list."""

    is_object: bool
    name: str | None
    parent: _Frame | None
    shape: dict[str, Any] = field(default_factory=dict)
    """The names of an object, with the values that are short strings or booleans."""
    free_names: FreeNames | None = None
    rule: Rule | None = None
    """The rule of the nearest name above that has one."""
    before: Any = None
    """The entry before it in a list, if that is a scalar."""
    last: Any = None
    """The newest entry of a list, if it is a scalar."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A name or a scalar, and its place in the text."""

    start: int
    end: int
    value: Any
    name: str | None
    frame: _Frame
    is_name: bool
    before: Any = None
    """The entry before it in a list, if that is a scalar."""


def looks_like_json(text: str) -> bool:
    """Whether a text is worth reading as JSON: it starts and ends like an object or a list."""
    head = text[:64].removeprefix(_BOM).lstrip()[:1]
    tail = text[-64:].rstrip()[-1:]
    return head + tail in ("{}", "[]")


def mask_json(text: str, masker: Masker, depth: int) -> tuple[str, int] | None:
    """Mask a text of one or several JSON values, and count what was masked. Return None if it is not JSON."""
    try:
        frames, leaves = _read(text)
    except (ValueError, IndexError):
        return None
    for frame in frames:
        names, outside = masker.field_names, frame.parent.shape if frame.parent else {}
        if frame.name is None:
            named = rule_after_flag(frame.before, names)
        else:
            named = rule_in_object(frame.name, outside, names)
        inherited = frame.parent.rule if frame.parent else None
        frame.rule = None if is_schema(frame.shape) else nearest_rule(named, inherited)
    pieces: list[str] = []
    done = total = 0
    for leaf in leaves:
        source = text[leaf.start : leaf.end]
        if leaf.is_name:
            new, count = _mask_name(leaf, masker, depth)
        else:
            rule = rule_in_object(leaf.name, leaf.frame.shape, masker.field_names)
            rule = rule or rule_after_flag(leaf.before, masker.field_names)
            rule = nearest_rule(rule, leaf.frame.rule)
            new, count = mask_leaf(leaf.value, source, leaf.name, rule, masker, depth)
        if count:
            pieces += [text[done : leaf.start], json.dumps(new, ensure_ascii=source.isascii())]
            done = leaf.end
            total += count
    return ("".join([*pieces, text[done:]]), total) if total else (text, 0)


def _mask_name(leaf: _Leaf, masker: Masker, depth: int) -> tuple[Any, int]:
    new, count = masker.mask_name(leaf.value, depth)
    if count:
        leaf.frame.free_names = leaf.frame.free_names or FreeNames(leaf.frame.shape)
        new = leaf.frame.free_names.take(new)
    return new, count


def _read(text: str) -> tuple[list[_Frame], list[_Leaf]]:
    """Read the objects and lists, parents first, and the names and scalars, in order.

    Raises:
        ValueError: the text is not JSON.
    """
    frames: list[_Frame] = []
    leaves: list[_Leaf] = []
    frame: _Frame | None = None
    name: str | None = None
    expected: _Expected = "value"
    position, end = int(text.startswith(_BOM)), len(text.rstrip(" \t\n\r"))
    while position < end:
        token = _TOKEN.match(text, position)
        kind = token.lastgroup if token else None
        if token is None or kind is None or kind not in _ALLOWED[expected]:
            raise ValueError("unexpected token")
        start, position = token.start(kind), token.end()
        if kind == "open":
            frame = _Frame(token[kind] == "{", name, frame, before=frame.last if frame else None)
            if frame.parent is not None:
                frame.parent.last = None
            frames.append(frame)
            name = None
            expected = "first name" if frame.is_object else "first value"
        elif frame is None:
            raise ValueError("scalar outside of objects and lists")
        elif kind == "close":
            if (token[kind] == "}") != frame.is_object:
                raise ValueError("mismatched bracket")
            frame = frame.parent
            expected = "comma" if frame else "value"
        elif kind == "comma":
            expected = "name" if frame.is_object else "value"
        elif kind == "colon":
            expected = "value"
        elif expected in ("name", "first name"):
            name, position = scanstring(text, position, False)
            frame.shape.setdefault(name, None)
            leaves.append(_Leaf(start, position, name, None, frame, is_name=True))
            expected = "colon"
        else:
            value, position = _read_scalar(text, token)
            is_short = isinstance(value, bool) or (isinstance(value, str) and len(value) < _SHORT_VALUE)
            if name is not None and is_short:
                frame.shape[name] = value
            leaves.append(_Leaf(start, position, value, name, frame, is_name=False, before=frame.last))
            frame.last = None if frame.is_object else value
            name = None
            expected = "comma"
    if frame is not None or expected != "value":
        raise ValueError("unexpected end")
    return frames, leaves


def _read_scalar(text: str, token: re.Match[str]) -> tuple[Any, int]:
    if token.lastgroup == "string":
        value, end = scanstring(text, token.end(), False)
        return value, end
    return json.loads(token["scalar"], parse_int=lambda digits: int(digits[:_LONGEST_INT])), token.end()
