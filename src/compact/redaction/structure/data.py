"""Python data: dicts, lists and strings are masked as a copy. What holds no secret comes back as the same object.

Nothing here recurses, so nesting may be as deep as memory allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from compact.messages.dialects.wire import plain, rebuild
from compact.redaction.fields.names import FieldNames
from compact.redaction.rules.matches import MASK
from compact.redaction.rules.rule import Rule
from compact.redaction.structure.leaves import FreeNames, Masker, is_schema, mask_leaf, rule_in_object

_LONGEST_FLAG = 64
_LONGEST_NUMBER_BITS = 2_000
"""Python refuses to write integers of more than some 4,000 digits."""


@dataclass(slots=True)
class _Node:
    """A container and the copy of it that is being made."""

    source: Any
    keys: list[Any]
    children: list[Any]
    rule: Rule | None
    parent: _Node | None
    copies: list[Any] = field(default_factory=list)
    changed: bool = False

    def add(self, copy: Any) -> None:
        """Add the copy of the next child."""
        self.changed = self.changed or copy is not self.children[len(self.copies)]
        self.copies.append(copy)


def mask_value(value: Any, masker: Masker) -> Any:
    """Mask the leaves of data. The input is never changed, and is returned itself if nothing is masked."""
    root = node = _Node(None, [None], [value], None, None)
    open_ids: set[int] = set()
    while True:
        if len(node.copies) < len(node.children):
            place = len(node.copies)
            child = node.children[place]
            rule = _rule_for_child(node, place, masker.field_names)
            # A container that contains itself is left as it is where it comes round again.
            if isinstance(child, Mapping | list | tuple) and child and id(child) not in open_ids:
                open_ids.add(id(child))
                node = _open(child, rule, node)
            else:
                node.add(_mask_leaf(child, node.keys[place], rule, masker))
        elif node.parent is None:
            return root.copies[0]
        else:
            open_ids.discard(id(node.source))
            node.parent.add(_build(node, masker))
            node = node.parent


def _open(source: Any, rule: Rule | None, parent: _Node) -> _Node:
    if isinstance(source, Mapping):
        return _Node(source, list(source), list(source.values()), None if is_schema(source) else rule, parent)
    return _Node(source, [None] * len(source), list(source), rule, parent)


def _rule_for_child(node: _Node, place: int, field_names: FieldNames) -> Rule | None:
    if isinstance(node.source, Mapping):
        return rule_in_object(node.keys[place], node.source, field_names) or node.rule
    before = node.children[place - 1] if place else None
    if isinstance(before, str) and before.startswith("-") and len(before) <= _LONGEST_FLAG:
        return field_names.rule_for(before) or node.rule  # the arguments of a command: ["--password", "..."]
    return node.rule


def _mask_leaf(leaf: Any, name: Any, rule: Rule | None, masker: Masker) -> Any:
    if leaf is None or isinstance(leaf, str | int | float):
        is_writable = not isinstance(leaf, int) or leaf.bit_length() < _LONGEST_NUMBER_BITS
        written = repr(leaf) if is_writable and not isinstance(leaf, str) else ""
        return mask_leaf(leaf, written, name, rule, masker, 0)[0]
    if isinstance(leaf, bytes | bytearray):
        return _mask_bytes(leaf, masker)
    try:
        return _mask_object(leaf, masker)
    except RecursionError:
        return MASK


def _mask_object(item: Any, masker: Masker) -> Any:
    """Mask an SDK's object or a dataclass as an object of its class. Anything else is left as it is."""
    if callable(getattr(item, "model_dump", None)) and not isinstance(item, type):
        data = plain(item)
        masked = mask_value(data, masker)
        return item if masked is data else rebuild(item, masked)
    if is_dataclass(item) and not isinstance(item, type):
        values = {part.name: getattr(item, part.name) for part in fields(item) if part.init}
        masked = mask_value(values, masker)
        return item if masked is values else replace(item, **masked)
    return item


def _mask_bytes(leaf: bytes | bytearray, masker: Masker) -> bytes | bytearray:
    try:
        masked, count = masker.mask_text(leaf.decode("utf-8"), 0)
    except UnicodeDecodeError:
        return leaf
    return type(leaf)(masked.encode("utf-8", "surrogatepass")) if count else leaf


def _build(node: _Node, masker: Masker) -> Any:
    """Build the copy of a container whose children are done. Return the container itself if nothing changed."""
    source = node.source
    if isinstance(source, Mapping):
        names = [masker.mask_text(name, 0)[0] if isinstance(name, str) else name for name in node.keys]
        renamed = any(new is not old for new, old in zip(names, node.keys, strict=True))
        if not node.changed and not renamed:
            return source
        free_names = FreeNames(node.keys)
        return {
            (new if new is old else free_names.take(new)): value
            for old, new, value in zip(node.keys, names, node.copies, strict=True)
        }
    if not node.changed:
        return source
    if isinstance(source, list):
        return node.copies
    make = getattr(source, "_make", tuple)  # a named tuple stays one
    return make(node.copies)
