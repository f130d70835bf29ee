"""Live masking: messages are masked with placeholders before they go to a model.

Text, tool arguments and tool results are masked in every dialect. Roles, ids, types, names of tools and signed or opaque
blocks stay as they are. What is masked in a message depends only on it and on the messages before it, so a list that
grows keeps the bytes of its beginning.
"""

from __future__ import annotations

from typing import Any

from compact.messages.dialects.wire import plain
from compact.redaction.data import replace_findings
from compact.redaction.disguises import find_as_seen, without_disguise
from compact.redaction.memory import Origin, ValueMemory, is_generated, is_memorable
from compact.redaction.origins import mask_blocks, mask_message
from compact.redaction.placeholders import Placeholders
from compact.redaction.redactor import UNPROVEN_RULES, Masking, Redactor, merge_findings
from compact.redaction.rules.matches import MASK, PLACEHOLDER, Finding
from compact.redaction.rules.rule import Rule
from compact.redaction.scan import Scanner, scanner_for
from compact.redaction.shapes import is_made_up

_BESIDE = -1
"""The place of what is sent beside the list."""
_TYPED = "typed"
_SECRET = "SECRET"
_SHORTEST_VALUE = 6


class LiveMasks:
    """Masks the messages of one session, in their order. It must be used by one thread at a time."""

    def __init__(self, redactor: Redactor) -> None:
        self.placeholders = Placeholders()
        self._scanner = scanner_for(redactor.rules)
        self._labels = {rule.id: rule.label for rule in redactor.rules}
        self._said = ValueMemory()
        """Values in the words of people and hosts. They are masked wherever they occur later."""
        self._taught = ValueMemory()
        """Secrets in the words of tools and models. They never mask a person's words."""
        self._heard = ValueMemory()
        """Personal data in the words of tools and models. Names and numbers are ordinary words, so they mask results only."""
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
        return mask_blocks(value, masking)

    def mask_result(self, text: str) -> str:
        """Mask a tool's result that is stored before it stands in the list."""
        masking = self._masking(_BESIDE, is_reply=False)
        masking.origin = "tool"
        return masking.mask_text(text)[0]

    def rewind(self, place: int) -> None:
        """Forget what was learned from the message at a place and from those behind it."""
        for memory in self._memories:
            memory.rewind(place)
        self._raw_at = {name: at for name, at in self._raw_at.items() if at < place}

    def settle(self) -> None:
        """The list now holds our own copies: nothing in it is in clear, and all that was learned came before it."""
        for memory in self._memories:
            memory.settle()
        self._raw_at.clear()

    @property
    def _learned(self) -> int:
        return sum(memory.learned for memory in self._memories)

    @property
    def _memories(self) -> tuple[ValueMemory, ...]:
        return (self._said, self._taught, self._heard)

    def _mask(self, item: Any, place: int) -> Any:
        return mask_message(item, self._masking(place, is_reply=_is_reply(item)), for_model=True)

    def _masking(self, place: int, *, is_reply: bool) -> LiveMasking:
        return LiveMasking(self, self._scanner, place, is_reply=is_reply)

    # --- for the masking of one message

    def find_known(self, text: str, origin: Origin) -> list[Finding]:
        """Find the values that were recognised before and mask the words of this origin, also in disguise."""
        if origin == "compact" or not any(self._memories):
            return []
        return find_as_seen(text, lambda seen: self._find_known(seen, origin))

    def _find_known(self, text: str, origin: Origin) -> list[Finding]:
        found = self._said.find(text)
        if origin != "person":
            found += self._taught.find(text)
        return found + self._heard.find(text) if origin == "tool" else found

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

    def learn(self, value: str, rule_id: str, place: int, origin: Origin) -> None:
        """Remember a value, unless it is short or a word that stands elsewhere by chance."""
        for written in dict.fromkeys((value.strip(), without_disguise(value).strip())):
            self._learn(written, rule_id, place, origin)

    def _learn(self, value: str, rule_id: str, place: int, origin: Origin) -> None:
        if origin == "compact" or rule_id in UNPROVEN_RULES or PLACEHOLDER.search(value):
            return
        is_personal = self._labels.get(rule_id, _SECRET) != _SECRET
        if len(value) < _SHORTEST_VALUE:
            return
        if origin == "person":
            if is_personal or is_memorable(value):
                self._said.learn(value, place)
        elif is_personal:
            self._heard.learn(value, place)
        elif is_generated(value):
            self._taught.learn(value, place)

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
            self._masks.learn(value, finding.rule, self._place, self.origin)
        known = self._masks.find_known(text, self.origin)
        typed = self._masks.find_typed(text, self._place) if self.escapes else []
        return merge_findings(sorted([*found, *known, *typed]))

    def masks_leaf(self, rule: Rule, leaf: str | float) -> bool:
        """Whether a leaf is masked whole, because its name falls under `rule`."""
        if isinstance(leaf, str) and PLACEHOLDER.fullmatch(leaf):
            return False
        masked = super().masks_leaf(rule, leaf)
        if masked:
            self._masks.learn(str(leaf), rule.id, self._place, self.origin)
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


def _is_reply(item: Any) -> bool:
    """Whether a model wrote the message."""
    try:
        return plain(item).get("role") in ("assistant", "model")
    except ValueError:
        return False
