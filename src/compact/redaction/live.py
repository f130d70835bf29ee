"""Live masking: messages are masked with placeholders before they go to a model.

Text, tool arguments and tool results are masked in every dialect. Roles, ids, types, names of tools and signed or opaque
blocks stay as they are. What is masked in a message depends only on it and on the messages before it, so a list that
grows keeps the bytes of its beginning.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from compact.messages.dialects.wire import plain, rebuild
from compact.redaction.data import is_sealed, mask_across, mask_value, replace_findings
from compact.redaction.placeholders import Placeholders
from compact.redaction.redactor import UNPROVEN_RULES, Masking, Redactor, is_memorable, merge_findings
from compact.redaction.rules.matches import MASK, PLACEHOLDER, Finding
from compact.redaction.rules.rule import Rule
from compact.redaction.scan import Scanner, scanner_for
from compact.redaction.shapes import is_made_up

_BESIDE = -1
"""The place of what is sent beside the list."""
_TYPED = "typed"
_SEEN_BEFORE = "seen-before"
_SECRET = "SECRET"
_SHORTEST_VALUE = 6
_HEAD_CHARS = _SHORTEST_VALUE
_HEAD = re.compile(rf"(?:(?<![^\W_])|(?![^\W_]))(?=(\S[\s\S]{{{_HEAD_CHARS - 1}}}))")
"""The first characters of anything that is not the middle of a word."""

_STRUCTURE = frozenset(
    [
        "role",
        "type",
        "kind",
        "id",
        "name",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "toolCallId",
        "toolUseId",
        "toolName",
        "tool_name",
        "status",
        "model",
        "index",
        "finish_reason",
        "stop_reason",
        "stopReason",
        "cache_control",
        "media_type",
        "mime_type",
        "mimeType",
        "mediaType",
        "detail",
        "file_id",
        "signature",
        "encrypted_content",
        "thought_signature",
        "thoughtSignature",
    ]
)
_BLOCKS = frozenset(
    [
        "content",
        "tool_calls",
        "function",
        "function_call",
        "custom",
        "parts",
        "summary",
        "toolUse",
        "toolResult",
        "functionCall",
        "functionResponse",
    ]
)
_SPEAKERS = frozenset({"user", "system", "developer", "assistant"})
"""Roles whose `name` is that of a speaker, not of a tool."""
_SEALED_FIELDS = ("signature", "encrypted_content", "thought_signature", "thoughtSignature")
_SEALED_TYPES = frozenset({"redacted_thinking", "compaction", "compaction_summary", "encrypted_reasoning"})
_BASE64_FIELDS = frozenset({"data", "file_data", "url", "image_url", "b64_json"})
_BASE64 = re.compile(r"(?:data:[\w/+.-]*(?:;[\w=.-]+)*;base64,)?[A-Za-z0-9+/_\s-]{64,}={0,3}\s*\Z")
_RESULT_TYPES = frozenset({"tool_result", "tool-result", "function_response", "mcp_tool_result"})


class LiveMasks:
    """Masks the messages of one session, in their order. It must be used by one thread at a time."""

    def __init__(self, redactor: Redactor) -> None:
        self.placeholders = Placeholders()
        self._scanner = scanner_for(redactor.rules)
        self._labels = {rule.id: rule.label for rule in redactor.rules}
        self._said = ValueMemory()
        """Values in the words of people, hosts and models. They are masked wherever they occur later."""
        self._taught = ValueMemory()
        """Values in the results of tools. They are masked in later results only: a tool must not mask a person's words."""
        self._raw_at: dict[str, int] = {}
        """For each placeholder the first message of the list that holds its value in clear."""

    def mask(self, item: Any, place: int) -> Any:
        """Mask the message at a place of the list. It is returned itself if nothing in it is masked."""
        learned = self._learned
        masked = self._mask(item, place)
        # A value that is recognised late in a message may stand in its beginning too.
        return masked if self._learned == learned else self._mask(item, place)

    def mask_beside(self, value: Any, *, is_schema: bool = False) -> Any:
        """Mask a system prompt or the schemas of tools, which are sent beside the list.

        In a schema, `password: ...` describes a field. There, only what is recognised as a secret is masked.
        """
        masking = self._masking(_BESIDE, is_reply=False)
        masking.is_schema = is_schema
        if isinstance(value, str):
            return masking.mask_text(value)[0]
        return _mask_blocks(value, masking)

    def mask_result(self, text: str) -> str:
        """Mask a tool's result that is stored before it stands in the list."""
        masking = self._masking(_BESIDE, is_reply=False)
        masking.in_result = True
        return masking.mask_text(text)[0]

    def rewind(self, place: int) -> None:
        """Forget what was learned from the message at a place and from those behind it."""
        self._said.rewind(place)
        self._taught.rewind(place)
        self._raw_at = {name: at for name, at in self._raw_at.items() if at < place}

    def settle(self) -> None:
        """The list now holds our own copies: nothing in it is in clear, and all that was learned came before it."""
        self._said.settle()
        self._taught.settle()
        self._raw_at.clear()

    @property
    def _learned(self) -> int:
        return self._said.learned + self._taught.learned

    def _mask(self, item: Any, place: int) -> Any:
        if isinstance(item, str):
            return self._masking(place, is_reply=False).mask_text(item)[0]
        try:
            data = plain(item)
        except ValueError:
            return mask_value(item, self._masking(place, is_reply=False))
        masking = self._masking(place, is_reply=data.get("role") in ("assistant", "model"))
        masking.in_result = data.get("role") == "tool" or str(data.get("type", "")).endswith("_output")
        masked = _mask_speaker(_mask_entry(data, masking), masking)
        return item if masked is data else rebuild(item, masked)

    def _masking(self, place: int, *, is_reply: bool) -> LiveMasking:
        return LiveMasking(self, self._scanner, place, is_reply=is_reply)

    # --- for the masking of one message

    def find_known(self, text: str, *, in_result: bool) -> list[Finding]:
        """Find the values that were recognised before."""
        found = self._said.find(text)
        return found + self._taught.find(text) if in_result else found

    def find_typed(self, text: str, place: int) -> list[Finding]:
        """Find what looks like a placeholder of ours although the list still holds its value in clear."""
        if "<" not in text or not self._raw_at:
            return []
        return [
            Finding(found.start(), found.end(), _TYPED, MASK)
            for found in PLACEHOLDER.finditer(text)
            if self._raw_at.get(found[0], place) < place
        ]

    def is_proven(self, value: str, rule_id: str) -> bool:
        """Whether a value is more than a word behind the name of a field."""
        return self._labels.get(rule_id, _SECRET) != _SECRET or is_made_up(value)

    def learn(self, value: str, rule_id: str, place: int, *, in_result: bool) -> None:
        """Remember a value, unless it is short or a common word."""
        value = value.strip()
        if rule_id in UNPROVEN_RULES or PLACEHOLDER.search(value):
            return
        is_personal = self._labels.get(rule_id, _SECRET) != _SECRET
        if len(value) >= _SHORTEST_VALUE and (is_personal or is_memorable(value)):
            (self._taught if in_result else self._said).learn(value, place)

    def give(self, value: str | float, rule_id: str, place: int) -> str:
        """Return the placeholder of a value."""
        if rule_id == _TYPED:
            return self.placeholders.give_typed(str(value))
        placeholder = self.placeholders.give(value, self._labels.get(rule_id, _SECRET))
        self._raw_at.setdefault(placeholder, place)
        return placeholder


class LiveMasking(Masking):
    """Masks one message with placeholders; see `data.Masker`."""

    def __init__(self, masks: LiveMasks, scanner: Scanner, place: int, *, is_reply: bool) -> None:
        super().__init__(scanner)
        self.in_result = False
        """Whether the text is the result of a tool."""
        self.is_schema = False
        self.escapes = not is_reply
        """Whether a placeholder in the text is text like any other. A model repeats ours, and we have just written some."""
        self._masks = masks
        self._place = place

    def find(self, text: str) -> list[Finding]:
        """Everything to mask in a plain text, sorted by start, without overlaps."""
        found = self._scanner.find(text)
        if self.is_schema:
            found = [each for each in found if self._masks.is_proven(text[each.start : each.end], each.rule)]
        for finding in found:
            value = text[finding.start : finding.end]
            self._masks.learn(value, finding.rule, self._place, in_result=self.in_result)
        known = self._masks.find_known(text, in_result=self.in_result)
        typed = self._masks.find_typed(text, self._place) if self.escapes else []
        return merge_findings(sorted([*found, *known, *typed]))

    def masks_leaf(self, rule: Rule, leaf: str | float) -> bool:
        """Whether a leaf is masked whole, because its name falls under `rule`."""
        if isinstance(leaf, str) and PLACEHOLDER.fullmatch(leaf):
            return False
        masked = super().masks_leaf(rule, leaf)
        if masked:
            self._masks.learn(str(leaf), rule.id, self._place, in_result=self.in_result)
        return masked

    def stand_in(self, value: str | float, rule_id: str, _mask: str, /) -> str:
        """The placeholder of a value."""
        return self._masks.give(value, rule_id, self._place)

    def _mask_plain(self, text: str) -> tuple[str, int]:
        found = self.find(text)
        if not found:
            return text, 0
        outside, self.escapes = self.escapes, False
        masked, more = super()._mask_plain(replace_findings(text, found, self))
        self.escapes = outside
        return masked, len(found) + more

    def _is_clean_json(self, _text: str, /) -> bool:
        return False  # what was learned meanwhile may stand in it


class ValueMemory:
    """Values that are found wherever they occur as whole words. Learning and finding are linear."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)
        """How long the values with the same first characters are. Many keys begin alike."""
        self.learned = 0

    def learn(self, value: str, place: int) -> None:
        """Remember a value that stands in the message at a place."""
        if value not in self._places:
            self._places[value] = place
            self._lengths[value[:_HEAD_CHARS]].add(len(value))
            self.learned += 1

    def find(self, text: str) -> list[Finding]:
        """Find the values in a text, in their order."""
        if not self._places:
            return []
        return [
            Finding(start, start + length, _SEEN_BEFORE, MASK)
            for start, head in ((found.start(), found[1]) for found in _HEAD.finditer(text))
            for length in sorted(self._lengths.get(head, ()))
            if start + length <= len(text)
            and text[start : start + length] in self._places
            and _ends_word(text, start + length)
        ]

    def rewind(self, place: int) -> None:
        """Forget what was learned at a place or behind it."""
        self._places = {value: at for value, at in self._places.items() if at < place}

    def settle(self) -> None:
        """Everything was learned before the list that begins now."""
        self._places = dict.fromkeys(self._places, -1)


def _ends_word(text: str, end: int) -> bool:
    return not (text[end - 1].isalnum() and text[end : end + 1].isalnum())


def _mask_entry(data: Mapping[str, Any], masking: LiveMasking) -> Any:
    """Mask a message or a block. It is returned itself if nothing in it is masked."""
    if _is_opaque(data):
        return data
    outside = masking.in_result
    masking.in_result = outside or data.get("type") in _RESULT_TYPES
    changed = {}
    for name, value in data.items():
        new = _mask_field(name, value, masking)
        if new is not value:
            changed[name] = new
    masking.in_result = outside
    return {**data, **changed} if changed else data


def _mask_speaker(data: Any, masking: LiveMasking) -> Any:
    """Mask the name of a message's speaker. Providers refuse angle brackets in it, so its placeholder has none."""
    name = data.get("name")
    if not isinstance(name, str) or data.get("role") not in _SPEAKERS:
        return data
    masked, count = masking.mask_text(name)
    return {**data, "name": masked.replace("<", "").replace(">", "")} if count else data


def _mask_field(name: str, value: Any, masking: LiveMasking) -> Any:
    if name in _STRUCTURE or value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        is_blob = (name in _BASE64_FIELDS and _BASE64.match(value)) or is_sealed(name, value)
        return value if is_blob else masking.mask_text(value)[0]
    if name in _BLOCKS:
        return _mask_blocks(value, masking)
    (masked,) = mask_value({name: value}, masking).values()
    return masked


def _mask_blocks(value: Any, masking: LiveMasking) -> Any:
    if isinstance(value, Mapping):
        return _mask_entry(value, masking)
    if not isinstance(value, list | tuple):
        return mask_value(value, masking)
    masked = []
    for old, block in zip(value, mask_across(value, masking), strict=True):
        outside, masking.escapes = masking.escapes, masking.escapes and block is old
        masked.append(_mask_block(block, masking))
        masking.escapes = outside
    return masked if any(new is not old for new, old in zip(masked, value, strict=True)) else value


def _mask_block(block: Any, masking: LiveMasking) -> Any:
    if isinstance(block, str):
        return masking.mask_text(block)[0]
    try:
        data = plain(block)
    except ValueError:
        return mask_value(block, masking)
    masked = _mask_speaker(_mask_entry(data, masking), masking)
    return block if masked is data else rebuild(block, masked)


def _is_opaque(data: Mapping[str, Any]) -> bool:
    """Whether a provider refuses a block that was changed."""
    if data.get("type") in _SEALED_TYPES or any(data.get(name) for name in _SEALED_FIELDS):
        return True
    return data.get("type") == "reasoning" and "id" in data
