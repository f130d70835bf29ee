"""Seals: the hashes by which the archive notices that a record is not as it was written.

Without a key a seal is a SHA-256. It shows damage, and changes by somebody who did not compute it anew. With a key
(`archive.mac_key`) it is an HMAC-SHA256, which nobody can compute who does not have the key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from compact.errors import ConfigError

KeySource: TypeAlias = str | Callable[[], bytes | str]
"""Where a key comes from: `env:NAME`, `file:PATH`, or a function that returns it."""

LEAST_KEY_BYTES = 16
_MOST_KEY_BYTES = 1 << 16
_SETTING = "archive.mac_key"


class Seals:
    """Makes and checks seals. The key is held in memory only, and no text shows it."""

    __slots__ = ("_key", "is_keyed")

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self.is_keyed = key is not None
        """Whether the seals are MACs."""

    def seal(self, *parts: bytes) -> str:
        """Return the seal of some bytes, in hexadecimal. Where one part ends and the next begins matters."""
        made = hashlib.sha256() if self._key is None else hmac.new(self._key, digestmod=hashlib.sha256)
        for part in parts[:-1]:
            made.update(b"%d:" % len(part))
            made.update(part)
        made.update(parts[-1])
        return made.hexdigest()

    def is_seal(self, given: object, *parts: bytes) -> bool:
        """Return whether this is the seal of these bytes."""
        return isinstance(given, str) and hmac.compare_digest(
            given.encode("utf-8", "replace"), self.seal(*parts).encode()
        )

    def mac(self, folder: str, line: bytes) -> str:
        """Return the MAC of a session's record. It holds for one folder, so that no other session's record can take its place."""
        return self.seal(b"compact record", folder.encode(), line)

    def check_mac(self, given: object, folder: str, line: bytes) -> None:
        """Check the MAC of a session's record.

        Raises:
            ValueError: it has none, or another one.
        """
        if given is None:
            raise ValueError("it has no MAC, and archive.mac_key is set")
        if not self.is_seal(given, b"compact record", folder.encode(), line):
            raise ValueError("its MAC is wrong: it was changed, or made with another key")


def open_seals(source: KeySource | None) -> Seals:
    """Return the seals of the configured key, or seals without a key.

    Raises:
        ConfigError: the key cannot be read, or it is too short. The text never shows it.
    """
    return Seals(None if source is None else _read_key(source))


def _read_key(source: KeySource) -> bytes:
    kind, _, place = source.partition(":") if isinstance(source, str) else ("", "", "")
    if callable(source):
        found: object = source()
        key = found.encode() if isinstance(found, str) else bytes(found) if isinstance(found, bytes) else b""
    elif kind == "env":
        key = os.environ.get(place, "").strip().encode()
    elif kind == "file":
        try:
            with Path(place).open("rb") as file:
                key = file.read(_MOST_KEY_BYTES).strip()
        except OSError as problem:
            raise _unusable(f"the file cannot be read: {problem.strerror}") from problem
    else:
        raise _unusable("it is neither env:NAME, nor file:PATH, nor a function")
    if len(key) < LEAST_KEY_BYTES:
        raise _unusable(f"it gives fewer than {LEAST_KEY_BYTES} bytes")
    return key


def _unusable(why: str) -> ConfigError:
    return ConfigError(
        f"{_SETTING} is not usable: {why}",
        hint="Name a variable (env:NAME) or a file (file:PATH) that holds at least 16 random bytes, for example 32 "
        "hexadecimal digits",
        path=_SETTING,
    )
