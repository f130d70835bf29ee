"""Data first: JSON text and Python objects are walked, so that a leaf is judged by the name it stands under.

Nothing here recurses: nesting may be as deep as memory allows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in typeshed, public in CPython since 2.6
from typing import Any, Protocol

from compact.redaction.candidates import MASK
from compact.redaction.fields import Fields, is_schema
from compact.redaction.rules import Rule

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<string>\")|(?P<open>[{\[])|(?P<close>[}\]])|(?P<mark>[:,])|"
    r"(?P<scalar>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.]))"
)
_BLOB = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{64,}={0,3}\Z")
_BLOB_CHARS = 512
_SEALED_NAMES = frozenset({"signature", "encrypted_content", "thought_signature", "thoughtSignature"})
_LABELS = frozenset({"name", "key", "id", "field", "variable", "Name", "Key"})
_LABELLED = frozenset({"value", "Value", "val", "content"})


class Masker(Protocol):
    """What the walkers ask: the masked form of a text, and whether a leaf is masked for its name."""

    fields: Fields

    def mask_text(self, text: str, depth: int) -> tuple[str, int]:
        """The text without its secrets, and how many spans were masked."""
        ...

    def masks_leaf(self, rule: Rule, leaf: Any) -> bool:
        """Whether a leaf under a name that falls under `rule` is masked whole."""
        ...


@dataclass(slots=True)
class _Frame:
    """An object or a list that is being read."""

    is_object: bool
    name: str | None
    parent: _Frame | None
    shape: dict[str, Any] = field(default_factory=dict)
    """For objects: its names, with the values of those that are short strings."""
    names: _Names | None = None
    rule: Rule | None = None
    is_judged: bool = False
    """Whether `rule` is known: the rule of the nearest name above that has one."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    start: int
    end: int
    value: Any
    name: str | None
    frame: _Frame | None
    is_name: bool = False


def looks_like_json(text: str) -> bool:
    """Whether a text is worth reading as JSON: it starts and ends like an object or a list."""
    head = text[:64].lstrip()[:1]
    tail = text[-64:].rstrip()[-1:]
    return (head == "{" and tail == "}") or (head == "[" and tail == "]")


def mask_json(text: str, masker: Masker, depth: int) -> tuple[str, int] | None:
    """JSON text, one value or several in a row, with its leaves masked and all else as it was; None: it is no JSON."""
    try:
        leaves = list(_leaves(text))
    except (ValueError, IndexError):
        return None
    pieces: list[str] = []
    done = 0
    count = 0
    labelled = _labelled_rules(leaves, masker.fields)
    for leaf in leaves:
        if leaf.is_name:
            new, masked = _masked_name(leaf, text, masker, depth)
        else:
            new, masked = _masked_leaf(leaf, text, masker, depth, labelled.get(leaf.start))
        if masked:
            pieces += [text[done : leaf.start], new]
            done = leaf.end
            count += masked
    return ("".join([*pieces, text[done:]]), count) if count else (text, 0)


def _masked_name(leaf: _Leaf, text: str, masker: Masker, depth: int) -> tuple[str, int]:
    new, count = masker.mask_text(leaf.value, depth)
    if count and leaf.frame is not None:
        leaf.frame.names = leaf.frame.names or _Names(leaf.frame.shape)
        new = leaf.frame.names.unused(new)
    return json.dumps(new, ensure_ascii=text[leaf.start : leaf.end].isascii()), count


class _Names:
    """The names of one object: two masked ones must not swallow each other's values."""

    def __init__(self, taken: Iterable[Any]) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def unused(self, name: str) -> str:
        """The name, or, where it is taken, with a number behind it."""
        spare, number = name, self._numbers.get(name, 1)
        while spare in self._taken:
            number += 1
            spare = f"{name}-{number}"
        self._numbers[name] = number
        self._taken.add(spare)
        return spare


def _masked_leaf(
    leaf: _Leaf, text: str, masker: Masker, depth: int, labelled: Rule | None
) -> tuple[str, int]:
    source = text[leaf.start : leaf.end]
    rule = labelled or _rule_of(leaf, masker.fields)
    if rule is not None and masker.masks_leaf(rule, leaf.value):
        return json.dumps(rule.replacement), 1
    if isinstance(leaf.value, str):
        if is_sealed(leaf.name, leaf.value):
            return source, 0
        new, count = masker.mask_text(leaf.value, depth)
        return json.dumps(new, ensure_ascii=source.isascii()), count
    new, count = masker.mask_text(source, depth)
    return json.dumps(MASK), 1 if count else 0


def _rule_of(leaf: _Leaf, fields: Fields) -> Rule | None:
    rule = fields.rule_for(leaf.name) if leaf.name is not None else None
    return rule or _inherited(leaf.frame, fields)


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


def _labelled_rules(leaves: list[_Leaf], fields: Fields) -> dict[int, Rule]:
    """The rules of values whose name is a value too: `{"name": "DB_PASSWORD", "value": "..."}`."""
    rules = {}
    for leaf in leaves:
        if leaf.name in _LABELLED and not leaf.is_name and leaf.frame is not None:
            for label in _LABELS & leaf.frame.shape.keys():
                said = leaf.frame.shape[label]
                rule = fields.rule_for(said) if isinstance(said, str) else None
                if rule is not None:
                    rules[leaf.start] = rule
    return rules


def _leaves(text: str) -> Iterator[_Leaf]:
    """Names and leaves of JSON text, in order.

    Raises:
        ValueError: it is no JSON.
    """
    frame: _Frame | None = None
    name: str | None = None
    expected = "value"
    position, end = 0, len(text.rstrip(" \t\n\r"))
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError("no JSON")
        kind = token.lastgroup
        start, position = token.start(kind or 0), token.end()
        if kind == "mark":
            expected = _after_mark(token["mark"], expected, frame)
        elif kind == "open":
            if expected not in ("value", "value or close"):
                raise ValueError("a value where none belongs")
            frame = _Frame(token["open"] == "{", name, frame)
            expected, name = ("name or close" if frame.is_object else "value or close"), None
        elif kind == "close":
            if frame is None or expected == "colon" or (token["close"] == "}") != frame.is_object:
                raise ValueError("closed what was not open")
            if expected in ("value", "name") or (expected == "value or close" and frame.is_object):
                raise ValueError("closed too early")
            frame = frame.parent
            expected, name = ("comma or close" if frame else "value"), None
        else:
            value: Any
            if kind == "string":
                value, position = scanstring(text, position, False)
            else:
                value = json.loads(token["scalar"])
            if kind == "string" and expected in ("name", "name or close"):
                name, expected = value, "colon"
                if frame is not None:
                    frame.shape.setdefault(value, None)
                yield _Leaf(start, position, value, None, frame, is_name=True)
                continue
            if expected not in ("value", "value or close") or frame is None:
                raise ValueError("a value where none belongs")
            if name is not None:
                frame.shape[name] = value if isinstance(value, str) and len(value) < 200 else None
            yield _Leaf(start, position, value, name, frame)
            expected, name = "comma or close", None
    if frame is not None or expected != "value":
        raise ValueError("it ends too early")


def _after_mark(mark: str, expected: str, frame: _Frame | None) -> str:
    if mark == ":" and expected == "colon":
        return "value"
    if mark == "," and expected == "comma or close" and frame is not None:
        return "name" if frame.is_object else "value"
    raise ValueError(f"{mark!r} where none belongs")


def is_sealed(name: str | None, value: str) -> bool:
    """Whether a leaf is binary data in letters: a picture, a provider's signature. Nobody reads it, nobody edits it."""
    if len(value) < 64 or (len(value) < _BLOB_CHARS and name not in _SEALED_NAMES):
        return False
    return _BLOB.match(value) is not None


@dataclass(slots=True)
class _Node:
    """A container whose copy is being made."""

    source: Any
    keys: list[Any]
    children: list[Any]
    rule: Rule | None
    parent: _Node | None
    made: list[Any] = field(default_factory=list)
    made_keys: list[Any] = field(default_factory=list)
    changed: bool = False


def mask_value(value: Any, masker: Masker) -> Any:
    """Data with its leaves masked: the same object where nothing is masked, else a copy; the input is never changed."""
    root = _Node(None, [0], [value], None, None)
    node: _Node | None = root
    open_ids: set[int] = set()
    while node is not None:
        if len(node.made) == len(node.children):
            finished, node = node, node.parent
            if node is None:
                break
            open_ids.discard(id(finished.source))
            _deliver(node, _built(finished, masker))
            continue
        place = len(node.made)
        child = node.children[place]
        rule = _rule_for_child(node, place, masker.fields)
        if isinstance(child, Mapping | list | tuple) and child and id(child) not in open_ids:
            open_ids.add(id(child))
            node = _node_of(child, rule, node)
        else:
            _deliver(node, _masked_object(child, node, place, rule, masker))
    return root.made[0]


def _node_of(child: Any, rule: Rule | None, parent: _Node) -> _Node:
    if isinstance(child, Mapping):
        keep = None if is_schema(child) else rule
        return _Node(child, list(child.keys()), list(child.values()), keep, parent)
    return _Node(child, list(range(len(child))), list(child), rule, parent)


def _rule_for_child(node: _Node, place: int, fields: Fields) -> Rule | None:
    if isinstance(node.source, Mapping):
        name = node.keys[place]
        rule = fields.rule_for(name) if isinstance(name, str) else None
        if rule is None and name in _LABELLED:
            labels = (node.source.get(label) for label in sorted(_LABELS & node.source.keys()))
            rule = next(
                (r for r in (fields.rule_for(said) for said in labels if isinstance(said, str)) if r), None
            )
        return rule or node.rule
    if place and isinstance(node.source, list | tuple):
        flag = node.source[place - 1]
        if isinstance(flag, str) and flag.startswith("-") and len(flag) < 64:
            return fields.rule_for(flag.lstrip("-")) or node.rule
    return node.rule


def _masked_object(child: Any, node: _Node, place: int, rule: Rule | None, masker: Masker) -> Any:
    if isinstance(child, str | int | float) and rule is not None and masker.masks_leaf(rule, child):
        return rule.replacement
    if isinstance(child, str):
        name = node.keys[place] if isinstance(node.source, Mapping) else None
        return (
            child
            if is_sealed(name if isinstance(name, str) else None, child)
            else masker.mask_text(child, 0)[0]
        )
    if isinstance(child, int | float) and not isinstance(child, bool):
        return MASK if masker.mask_text(repr(child), 0)[1] else child
    if isinstance(child, bytes | bytearray):
        try:
            return type(child)(masker.mask_text(child.decode("utf-8"), 0)[0].encode("utf-8"))
        except UnicodeError:
            return child
    return child


def _deliver(node: _Node, made: Any) -> None:
    place = len(node.made)
    same = made is node.children[place] or (
        isinstance(made, bytes | bytearray) and made == node.children[place]
    )
    node.made.append(node.children[place] if same else made)
    node.changed = node.changed or not same


def _built(node: _Node, masker: Masker) -> Any:
    if isinstance(node.source, Mapping):
        names = [masker.mask_text(name, 0)[0] if isinstance(name, str) else name for name in node.keys]
        if not node.changed and names == node.keys:
            return node.source
        taken = _Names(node.keys)
        return {
            (new if new is old else taken.unused(new)): value
            for old, new, value in zip(node.keys, names, node.made, strict=True)
        }
    if not node.changed:
        return node.source
    return node.made if isinstance(node.source, list) else _tuple_like(node.source, node.made)


def _tuple_like(source: Any, items: list[Any]) -> Any:
    make = getattr(source, "_make", None)
    return make(items) if callable(make) else tuple(items)
