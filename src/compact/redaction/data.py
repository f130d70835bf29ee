"""Python data: dicts, lists and strings are masked as a copy; what holds nothing to mask comes back as it is.

Nothing here recurses: nesting may be as deep as memory allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from compact.messages.dialects.wire import plain, rebuild
from compact.redaction.fields.values import Fields, is_schema
from compact.redaction.rules.candidates import MASK
from compact.redaction.rules.rule import Rule
from compact.redaction.structure import Masker, Names, is_sealed, rule_by_label

_LONGEST_FLAG = 64
_LONGEST_NUMBER_BITS = 2_000


@dataclass(slots=True)
class _Node:
    """A container whose copy is being made."""

    source: Any
    keys: list[Any]
    children: list[Any]
    rule: Rule | None
    parent: _Node | None
    made: list[Any] = field(default_factory=list)
    changed: bool = False

    def add(self, made: Any) -> None:
        """Takes the copy of the next child."""
        self.changed = self.changed or made is not self.children[len(self.made)]
        self.made.append(made)


def mask_value(value: Any, masker: Masker) -> Any:
    """Data with its leaves masked: the same object where nothing is masked; the input is never changed."""
    root = node = _Node(None, [None], [value], None, None)
    open_ids: set[int] = set()
    while True:
        if len(node.made) < len(node.children):
            place = len(node.made)
            child = node.children[place]
            rule = _rule_for_child(node, place, masker.fields)
            # A container that holds itself is left as it is where it comes round again.
            if isinstance(child, Mapping | list | tuple) and child and id(child) not in open_ids:
                open_ids.add(id(child))
                node = _opened(child, rule, node)
            else:
                node.add(_masked_leaf(child, node.keys[place], rule, masker))
        elif node.parent is None:
            return root.made[0]
        else:
            open_ids.discard(id(node.source))
            node.parent.add(_built(node, masker))
            node = node.parent


def _opened(source: Any, rule: Rule | None, parent: _Node) -> _Node:
    if isinstance(source, Mapping):
        return _Node(source, list(source), list(source.values()), None if is_schema(source) else rule, parent)
    return _Node(source, [None] * len(source), list(source), rule, parent)


def _rule_for_child(node: _Node, place: int, known: Fields) -> Rule | None:
    if isinstance(node.source, Mapping):
        name = node.keys[place]
        rule = known.rule_for(name) if isinstance(name, str) else None
        return rule or rule_by_label(name, node.source, known) or node.rule
    before = node.children[place - 1] if place else None
    if isinstance(before, str) and before.startswith("-") and len(before) <= _LONGEST_FLAG:
        return known.rule_for(before) or node.rule  # the arguments of a command: ["--password", "..."]
    return node.rule


def _masked_leaf(leaf: Any, name: Any, rule: Rule | None, masker: Masker) -> Any:
    if leaf is None or isinstance(leaf, bool):
        return leaf
    if isinstance(leaf, str | int | float):
        if rule is not None and masker.masks_leaf(rule, leaf):
            return rule.replacement
        if not isinstance(leaf, str):
            return MASK if _is_readable(leaf) and masker.mask_text(repr(leaf), 0)[1] else leaf
        return leaf if is_sealed(name, leaf) else masker.mask_text(leaf, 0)[0]
    if isinstance(leaf, bytes | bytearray):
        return _masked_bytes(leaf, masker)
    try:
        return _masked_object(leaf, masker)
    except RecursionError:
        return MASK


def _is_readable(number: object) -> bool:
    """Whether Python writes it in digits; it refuses integers of more than some 4,000."""
    return not isinstance(number, int) or number.bit_length() < _LONGEST_NUMBER_BITS


def _masked_object(item: Any, masker: Masker) -> Any:
    """An SDK's object or a dataclass, as its own kind; anything else as it is."""
    if callable(getattr(item, "model_dump", None)) and not isinstance(item, type):
        data = plain(item)
        masked = mask_value(data, masker)
        return item if masked is data else rebuild(item, masked)
    if is_dataclass(item) and not isinstance(item, type):
        values = {part.name: getattr(item, part.name) for part in fields(item) if part.init}
        masked = mask_value(values, masker)
        return item if masked is values else replace(item, **masked)
    return item


def _masked_bytes(leaf: bytes | bytearray, masker: Masker) -> bytes | bytearray:
    try:
        masked, count = masker.mask_text(leaf.decode("utf-8"), 0)
    except UnicodeDecodeError:
        return leaf
    return type(leaf)(masked.encode("utf-8", "surrogatepass")) if count else leaf


def _built(node: _Node, masker: Masker) -> Any:
    """The copy of a container whose children are done; the container itself when none of them changed."""
    source = node.source
    if isinstance(source, Mapping):
        names = [masker.mask_text(name, 0)[0] if isinstance(name, str) else name for name in node.keys]
        renamed = any(new is not old for new, old in zip(names, node.keys, strict=True))
        if not node.changed and not renamed:
            return source
        taken = Names(node.keys)
        return {
            (new if new is old else taken.unused(new)): value
            for old, new, value in zip(node.keys, names, node.made, strict=True)
        }
    if not node.changed:
        return source
    if isinstance(source, list):
        return node.made
    make = getattr(source, "_make", tuple)  # a named tuple stays one
    return make(node.made)
