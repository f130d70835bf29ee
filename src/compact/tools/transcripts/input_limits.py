"""How much of a file is read: enough for every real transcript, and an end for gzip bombs and endless pipes."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import NoReturn, Protocol

MOST_BYTES = 2_000_000_000
"""Bytes of a file that are read, after unpacking."""
MOST_RATIO = 50
"""How many times its size a gzip file may grow to. Real transcripts grow to 4 to 15 times."""
SMALL_BYTES = 32_000_000
"""Up to here a gzip file may grow, whatever its size."""
MOST_VALUES = 3_000_000
"""JSON values of a file. A parsed value takes about 100 bytes of memory, however short it is in the file."""
BYTES_OF_A_VALUE = 10
"""A larger file may have one value for each 10 bytes. Real transcripts have fewer."""

_PIECE_BYTES = 1 << 20
_chosen: ContextVar[int | None] = ContextVar("max_input", default=None)


def choose_limit(most_bytes: int | None) -> None:
    """Set the most bytes that are read of a file, for this context.

    A chosen limit replaces the ratio too, and allows as many JSON values as a file of that size may have.
    """
    _chosen.set(most_bytes)


class Stream(Protocol):
    """What is read from: a file, or the gzip data in it."""

    def read(self, size: int = -1, /) -> bytes: ...  # noqa: D102
    def readline(self, size: int = -1, /) -> bytes: ...  # noqa: D102
    def peek(self, size: int = 0, /) -> bytes: ...  # noqa: D102


class BoundedStream:
    """The bytes of a file, unpacked if they are gzip, up to a limit.

    Args:
        file: The opened file.
        is_packed: Whether it is gzip.
        refuse: Called with why no more is read, and what to do. It raises.
    """

    def __init__(
        self, file: io.BufferedReader, is_packed: bool, refuse: Callable[[str, str], NoReturn]
    ) -> None:
        self._packed = _Counted(file) if is_packed else None
        # A buffer around GzipFile would lose the good lines before broken data.
        self._stream: Stream = gzip.GzipFile(fileobj=self._packed) if self._packed else file  # type: ignore[call-overload]
        self._refuse = refuse
        self._read = 0
        self._values = 0

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, or all."""
        return b"".join(self._pieces(self._stream.read, size))

    def readline(self, size: int = -1) -> bytes:
        """Read a line, or the first `size` bytes of it."""
        return b"".join(self._pieces(self._stream.readline, size, b"\n"))

    def peek(self, size: int = 0) -> bytes:
        """Look at the next bytes without taking them."""
        return self._stream.peek(size)

    def _pieces(self, take: Callable[[int], bytes], size: int, end: bytes | None = None) -> Iterator[bytes]:
        """Take piece by piece, so that a limit is noticed before its excess is in memory."""
        left = sys.maxsize if size < 0 else size
        while left and (piece := take(min(left, _PIECE_BYTES))):
            self._count(piece)
            yield piece
            left -= len(piece)
            if end is not None and piece.endswith(end):
                return

    def _count(self, piece: bytes) -> None:
        self._read += len(piece)
        # Every value but the first of a list or object follows a comma. Those inside of strings count too: that is cheap.
        self._values += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
        chosen = _chosen.get()
        most = MOST_BYTES if chosen is None else chosen
        if self._read > most:
            self._refuse(f"it has more than {most:,} bytes", _HINT)
        most_values = max(MOST_VALUES, (self._read if chosen is None else chosen) // BYTES_OF_A_VALUE)
        if self._values > most_values:
            self._refuse(f"it has more than {most_values:,} JSON values, by its commas and brackets", _HINT)
        if chosen is None and self._packed is not None and self._read > SMALL_BYTES:
            size = self._packed.read_bytes
            if self._read > MOST_RATIO * size:
                self._refuse(f"its gzip data unpacks to more than {MOST_RATIO} times its size", _HINT)


_HINT = "If you trust it, allow more: compact --max-input 8g COMMAND ..."


class _Counted:
    """A file that counts what is read of it, even if it is a pipe."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.read_bytes += len(data)
        return data
