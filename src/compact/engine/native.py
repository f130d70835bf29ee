"""The provider's own compaction between passes: whose blocks a model reads, and what stands where it reads none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compact.engine.context import Desk, Row, alternate
from compact.events import Warned
from compact.messages import Message, Text
from compact.messages.compaction_blocks import has_block
from compact.summaries.native import DIALECTS, Provider


@dataclass(frozen=True, slots=True)
class NativeRules:
    """The provider's own compaction, for the model of a call."""

    provider: Provider | None = None
    """Whose blocks the model reads; None: nobody's."""
    is_chosen: bool = False
    """Whether the provider writes the summaries (`summary.model: native`)."""

    def why_not(self, dialect: str) -> str:
        """Why the provider cannot be asked about messages of this dialect; empty if it can."""
        if self.provider is None:
            return "the model has no native compaction"
        if not self.reads_block(dialect):
            return f"{self.provider} compacts messages of the dialect {DIALECTS[self.provider]}, and these are {dialect}"
        return ""

    def reads_block(self, dialect: str) -> bool:
        """Whether the model reads the block of a list in this dialect."""
        return self.provider is not None and DIALECTS[self.provider] == dialect


NO_NATIVE = NativeRules()
"""The provider compacts nothing."""


def no_native(model: str) -> Warned:
    """The warning that a model has no compaction of its own."""
    text = (
        f"summary.model is native, but {model} has no native compaction; summaries are made without a model"
    )
    return Warned(code="summarizer_unavailable", severity="medium", message=text)


def readable_items(rows: Sequence[Row], items: Sequence[Any], extract: str, desk: Desk) -> list[Any] | None:
    """The messages for a model that does not read the provider's block in them; None if there is none of ours.

    `items` are the messages of the rows. Those that are the same stay the same objects.
    """
    place = next((n for n, row in enumerate(rows) if has_block(row.message)), None)
    if place is None or not extract:
        return None
    written = {id(row): item for row, item in zip(rows, items, strict=True)}
    said = Row(Message("assistant", (Text(extract),)), 0, None, "summary")
    found = [said if n == place else row for n, row in enumerate(rows)]
    return [
        written[id(row)] if id(row) in written else desk.dialect.write(row.message)
        for row in alternate(found, desk)
    ]
