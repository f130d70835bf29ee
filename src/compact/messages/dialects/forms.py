"""The form of one entry: what a provider refuses in it whatever stands around it, and the same entry without that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Flaw(NamedTuple):
    """What a provider would refuse in an entry."""

    rule: str
    """The name of the violation."""
    why: str


class Form:
    """An entry whose flaws are mended one by one. The host's object is never changed."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.data: Mapping[str, Any] = given
        """The entry: the given object until something is mended."""
        self.flaws: list[Flaw] = []
        """What was wrong."""

    def put(self, key: str, value: Any, why: str, rule: str = "malformed") -> None:
        """Set a field, because of a flaw."""
        self.data = {**self.data, key: value}
        self.flaws.append(Flaw(rule, why))

    def drop(self, key: str, why: str, rule: str = "malformed") -> None:
        """Remove a field, because of a flaw."""
        self.data = {name: value for name, value in self.data.items() if name != key}
        self.flaws.append(Flaw(rule, why))

    def put_blocks(self, key: str, text_block: Callable[[str], Any], text_kinds: Sequence[str]) -> None:
        """Mend a list of blocks: a bare string becomes a text block, a text block without text goes."""
        blocks = self.data.get(key)
        if not isinstance(blocks, list | tuple):
            return
        if any(isinstance(block, str) for block in blocks):
            wrapped = [text_block(block) if isinstance(block, str) else block for block in blocks]
            self.put(key, wrapped, "a bare string stands where a content block should", "bare_string")
            blocks = wrapped
        kept = [block for block in blocks if not _lacks_text(block, text_kinds)]
        if len(kept) < len(blocks):
            self.put(key, kept, "a text block has no text")


def _lacks_text(block: Any, kinds: Sequence[str]) -> bool:
    return (
        isinstance(block, Mapping) and block.get("type") in kinds and not isinstance(block.get("text"), str)
    )


def is_missing(value: Any) -> bool:
    """Whether a content is null, absent or an empty list."""
    return value is None or (isinstance(value, list | tuple) and not value)


def text_block(text: str) -> dict[str, str]:
    """The text block that most formats share."""
    return {"type": "text", "text": text}
