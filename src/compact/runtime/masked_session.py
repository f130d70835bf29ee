"""What live masking remembers of one session: the list that the host passed, its masked copy, and what was sent.

Both kinds of host are recognised. One passes its full history in clear every time, so its list begins with the list before.
The other keeps the list that it was given, so its list begins with what was sent, which is masked already.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from compact.errors import MaskingError
from compact.messages.cache_marks import is_point
from compact.messages.dialects.wire import begins_with, plain
from compact.redaction import Redactor
from compact.redaction.live import LiveMasks
from compact.redaction.placeholders import texts_in

_MARK_LEVELS = 6
_SALT = "salt"
"""The name of the key in a note about placeholders. No placeholder is called that."""


class MaskedSession:
    """The masked copy of a session's list. `lock` must be held while it is used."""

    def __init__(self, redactor: Redactor) -> None:
        self.lock = threading.Lock()
        self.masks = LiveMasks(redactor)
        self.is_loaded = False
        """Whether the archive was asked for the placeholders of this session."""
        self.salt = ""
        self.rests_until = 0.0
        """When the archive is asked again after it failed, by the monotonic clock."""
        self._given: list[Any] = []
        self._masked: list[Any] = []
        self._sent: list[Any] = []

    def adopt(self, notes: Iterable[Mapping[str, str]], new_salt: str) -> None:
        """Continue with the placeholders in the archive. The first note of a number counts."""
        saved: dict[str, str] = {}
        for note in notes:
            self.salt = self.salt or note.get(_SALT, "")
            for placeholder, seal in note.items():
                if placeholder != _SALT:
                    saved.setdefault(placeholder, seal)
        self.salt = self.salt or new_salt
        self.masks.placeholders.adopt(saved.items(), self._seal)
        self.is_loaded = True

    def note(self) -> dict[str, str]:
        """A note about the placeholders that were given out since the last one; empty if there are none."""
        unsaved = self.masks.placeholders.unsaved
        return {_SALT: self.salt, **dict(unsaved)} if unsaved and self.is_loaded else {}

    def take(self, messages: Sequence[Any], deadline: float) -> list[Any]:
        """Return the masked copy of a host's list. Messages without anything to mask are the same objects.

        Raises:
            MaskingError: it is not done at the deadline, by the monotonic clock.
        """
        known = self._continue(messages)
        masked = list(known)
        for item in messages[len(known) :]:
            self._reserve(_data_of(item))
        for place in range(len(known), len(messages)):
            if time.monotonic() > deadline:
                raise MaskingError(
                    f"live masking has not finished after {place} of {len(messages)} messages",
                    hint="policy.timeout_s gives it more time",
                    reason="timeout",
                )
            masked.append(self.masks.mask(messages[place], place))
        self._given, self._masked = list(messages), masked
        return list(masked)

    def sent(self, messages: Sequence[Any]) -> None:
        """Note what the host was given. A host that keeps it passes it again."""
        self._sent = list(messages)

    def _continue(self, messages: Sequence[Any]) -> Sequence[Any]:
        """The masked copies of those messages at the beginning that are known."""
        same = _count_same(messages, self._given)
        if same < len(messages):
            kept = _count_kept(messages, self._sent)
            if kept > same:
                self.masks.settle()
                return messages[:kept]
        self.masks.rewind(same)
        # What is not masked is the host's object of this call: frameworks know their messages by identity.
        before = zip(messages, self._given[:same], self._masked, strict=False)
        return [new if masked is old else masked for new, old, masked in before]

    def _reserve(self, data: Any) -> None:
        """Never give out what somebody typed. A model only repeats what was given out."""
        if not isinstance(data, Mapping) or data.get("role") not in ("assistant", "model"):
            for text in texts_in(data):
                self.masks.placeholders.reserve(text)

    def _seal(self, value: str) -> str:
        salted = bytes.fromhex(self.salt)
        return blake2b(value.encode("utf-8", "surrogatepass"), key=salted, digest_size=16).hexdigest()


def _data_of(item: Any) -> Any:
    try:
        return plain(item)
    except ValueError:
        return item


def _count_same(messages: Sequence[Any], before: Sequence[Any]) -> int:
    if begins_with(messages, before):
        return len(before)
    pairs = zip(messages, before, strict=False)
    return next(
        (n for n, (new, old) in enumerate(pairs) if new is not old and new != old),
        min(len(messages), len(before)),
    )


def _count_kept(messages: Sequence[Any], sent: Sequence[Any]) -> int:
    """How many messages at the beginning are what was sent. Hosts move cache marks between two calls."""
    pairs = zip(messages, sent, strict=False)
    return next(
        (n for n, (new, old) in enumerate(pairs) if new is not old and _unmarked(new) != _unmarked(old)),
        min(len(messages), len(sent)),
    )


def _unmarked(value: Any, depth: int = 0) -> Any:
    if not depth:
        value = _data_of(value)
    if depth > _MARK_LEVELS:
        return value
    if isinstance(value, Mapping):
        return {k: _unmarked(v, depth + 1) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list | tuple):
        return [_unmarked(entry, depth + 1) for entry in value if not is_point(entry)]
    return value
