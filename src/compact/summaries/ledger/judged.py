"""What is kept of a message: a sentence or several, with what they answer and what they do to earlier ones."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compact.summaries.ledger.entry import Kind

_ARROW = re.compile(r"^(?:->|=>|→)\s*")


@dataclass(frozen=True, slots=True)
class Judged:
    """A sentence, or several that belong together, that is kept."""

    text: str
    kind: Kind | None
    """None: it only takes back what was said before."""
    answers: str = ""
    target: str = ""
    """What a sentence that takes something back is about, if it is not all of it."""
    only_if_changes: bool = False
    """It counts only if it changes what was said before: "deploys on Fridays are fine again"."""
    corrects: bool = False
    """The message says that something said before was wrong."""
    goes_on: bool = False
    """It takes something back and says something else as well."""


def clean(text: str) -> str:
    """The text without an arrow in front."""
    return _ARROW.sub("", text.strip())
