"""Data and messages: dicts, lists and strings are masked as a copy. What holds no secret comes back as the same object.

`mask_value` does not recurse, so nesting may be as deep as memory allows.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import accumulate, groupby
from typing import Any, Protocol

from compact.messages.dialects.wire import plain, rebuild
from compact.redaction.fields.names import FieldNames, is_schema, nearest_rule, rule_in_object
from compact.redaction.rules.matches import MASK, Finding
from compact.redaction.rules.rule import Rule

_LONGEST_FLAG = 64
_LONGEST_NUMBER_BITS = 2_000
"""Python refuses to write integers of more than some 4,000 digits."""
_LONGEST_NAMED = 200
_STRUCTURAL_NAME = re.compile(r"(?i)(?:^|[_-]|[a-z](?=I))(?:id|ids|index|type|role)\Z|\A(?:name|title)\Z")
"""A number under such a name is a reference and no phone number: `tool_call_id`."""
_BLOB = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{64,}={0,3}\Z")
_BLOB_CHARS = 512
_UNLEARNED_NAME = re.compile(
    r"(?i)(?:^|[_-]|[a-z](?=[IPFD]))(?:ids?|paths?|files?|filename|folder|dir|directory)\Z"
    r"|\A(?:type|role|kind|cwd|tool|tool_?name|function)\Z"
)
"""A leaf under such a name refers to something. It is matched by rules, and never changed by what was learned."""


class Masker(Protocol):
    """Masks plain text and judges leaves, for a walker."""

    field_names: FieldNames

    def find(self, text: str, /) -> list[Finding]:
        """Everything to mask in a plain text, sorted by start, without overlaps."""
        ...

    def mask_text(self, text: str, depth: int) -> tuple[str, int]:
        """Mask a text, and count what was masked. `depth` is the level of JSON inside strings."""
        ...

    def mask_name(self, text: str, depth: int) -> tuple[str, int]:
        """Mask a name, an id or a path like `mask_text`, but by rules alone: what was learned never changes these."""
        ...

    def masks_leaf(self, rule: Rule, leaf: str | float, /) -> bool:
        """Whether a leaf is masked whole, because its name falls under `rule`."""
        ...

    def stand_in(self, value: str | float, rule_id: str, mask: str, /) -> str:
        """What replaces a value; `mask` is the rule's own replacement."""
        ...


def mask_leaf(
    leaf: str | float | None, written: str, name: Any, rule: Rule | None, masker: Masker, depth: int
) -> tuple[Any, int]:
    """Mask a scalar, and count what was masked.

    Args:
        leaf: a string, a number, a boolean or None.
        written: a number as it is written.
        name: the name of the leaf in its object; None in a list.
        rule: the rule that the leaf falls under by its name.
        masker: masks and judges.
        depth: the level of JSON inside strings.
    """
    if leaf is None or isinstance(leaf, bool):
        return leaf, 0
    if rule is not None and masker.masks_leaf(rule, leaf):
        return masker.stand_in(leaf, rule.id, rule.replacement), 1
    if not isinstance(leaf, str):
        found = masker.find(written) or _find_by_name(written, name, masker)
        return (masker.stand_in(leaf, found[0].rule, MASK), 1) if found else (leaf, 0)
    if is_sealed(leaf):
        return leaf, 0
    is_unlearned = isinstance(name, str) and _UNLEARNED_NAME.search(name) is not None
    masked, count = (masker.mask_name if is_unlearned else masker.mask_text)(leaf, depth)
    if count or is_unlearned:
        return masked, count
    found = _find_by_name(leaf, name, masker)
    return (replace_findings(leaf, found, masker), len(found)) if found else (leaf, 0)


def _find_by_name(written: str, name: Any, masker: Masker) -> list[Finding]:
    """What is found in a leaf only if its name is read too, as in a line of text: `phone: 5551234567`."""
    if not isinstance(name, str) or len(written) > _LONGEST_NAMED or _STRUCTURAL_NAME.search(name):
        return []
    head = f"{name}: "
    return [
        Finding(found.start - len(head), found.end - len(head), found.rule, found.replacement)
        for found in masker.find(head + written)
        if found.start >= len(head)
    ]


def replace_findings(text: str, findings: Iterable[Finding], masker: Masker) -> str:
    """Replace what was found. The findings must be sorted by start and must not overlap."""
    pieces: list[str] = []
    done = 0
    for finding in findings:
        value = text[finding.start : finding.end]
        pieces += [text[done : finding.start], masker.stand_in(value, finding.rule, finding.replacement)]
        done = finding.end
    return "".join([*pieces, text[done:]])


def is_sealed(value: str) -> bool:
    """Whether a leaf is a large piece of encoded binary data, such as an image, which must stay as it is."""
    return len(value) >= _BLOB_CHARS and _BLOB.match(value) is not None


class FreeNames:
    """The names of one object. Two names that are masked alike must not overwrite each other's values."""

    def __init__(self, taken: Iterable[Any]) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Take the name, with a number appended if it is already taken."""
        free, number = name, self._numbers.get(name, 1)
        while free in self._taken:
            number += 1
            free = f"{name}-{number}"
        self._numbers[name] = number
        self._taken.add(free)
        return free


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
        return nearest_rule(rule_in_object(node.keys[place], node.source, field_names), node.rule)
    return nearest_rule(rule_after_flag(node.children[place - 1] if place else None, field_names), node.rule)


def rule_after_flag(before: Any, field_names: FieldNames) -> Rule | None:
    """The rule of an entry by the entry before it, as in the arguments of a command: `["--password", "..."]`."""
    is_flag = isinstance(before, str) and before.startswith("-") and len(before) <= _LONGEST_FLAG
    return field_names.rule_for(before) if is_flag else None


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
        names = [masker.mask_name(name, 0)[0] if isinstance(name, str) else name for name in node.keys]
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


def mask_across(blocks: list[Any] | tuple[Any, ...], masker: Masker) -> list[Any]:
    """Mask the secrets that continue from one text block in the next."""
    masked = list(blocks)
    for is_text, run in groupby(range(len(blocks)), key=lambda place: _is_text(blocks[place])):
        places = list(run)
        if not is_text or len(places) < 2:
            continue
        texts = [blocks[place]["text"] for place in places]
        for place, old, new in zip(places, texts, _mask_seams(texts, masker), strict=True):
            if new is not old:
                masked[place] = {**blocks[place], "text": new}
    return masked


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get("text"), str)


def _mask_seams(texts: list[str], masker: Masker) -> list[str]:
    edges = list(accumulate(map(len, texts), initial=0))
    masked = list(texts)
    for finding in reversed(_find_across(texts, edges, masker)):
        for number in range(bisect_right(edges, finding.start) - 1, bisect_left(edges, finding.end)):
            start, end = edges[number], edges[number + 1]
            head, tail = max(finding.start, start) - start, min(finding.end, end) - start
            if head < tail:
                piece = masker.stand_in(texts[number][head:tail], finding.rule, MASK)
                masked[number] = masked[number][:head] + piece + masked[number][tail:]
    return masked


def _find_across(texts: list[str], edges: list[int], masker: Masker) -> list[Finding]:
    """Find the secrets that only the joined texts show: cut in two, or cut off from their name."""
    together = masker.find("".join(texts))
    if not together:
        return []
    alone = [
        (start + finding.start, start + finding.end)
        for text, start in zip(texts, edges, strict=False)
        for finding in masker.find(text)
    ]
    starts = [start for start, _ in alone]
    found = []
    for finding in together:
        before = bisect_right(starts, finding.start) - 1
        if before < 0 or alone[before][1] < finding.end:
            found.append(finding)
    return found
