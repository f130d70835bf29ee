"""Content codings: gzip, deflate, br and zstd. A request is unpacked to be read, a copy of an answer to find its usage."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import brotli
import zstandard

_PIECE = 1024
"""Bytes that are unpacked at once: a bomb is noticed before it has filled the memory."""
_MOST_AT_ONCE = 1_000_000
_PLAIN = ("", "identity")


class TooLarge(Exception):
    """A body is longer than it may be, as it came or unpacked."""


class Undecodable(ValueError):
    """A body is not in the coding that its header names, or the coding is not known."""


class Decoder(Protocol):
    """Unpacks a body piece by piece."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Unpack the next piece. Raises Undecodable."""


def decode(body: bytes, coding: str, most: int) -> bytes:
    """Unpack a body. `coding` is the value of its Content-Encoding.

    Raises:
        TooLarge: it has more than `most` bytes.
        Undecodable: it cannot be unpacked.
    """
    for name in reversed(coding.split(",")):
        if name.strip().lower() not in _PLAIN:
            body = _unpack(body, decoder_of(name), most)
    return body


def _unpack(body: bytes, decoder: Decoder, most: int) -> bytes:
    pieces, size = [], 0
    for start in range(0, len(body), _PIECE):
        for piece in decoder.feed(body[start : start + _PIECE]):
            size += len(piece)
            if size > most:
                raise TooLarge
            pieces.append(piece)
    return b"".join(pieces)


def decoder_of(coding: str) -> Decoder:
    """The decoder of one coding.

    Raises:
        Undecodable: the coding is not known.
    """
    name = coding.strip().lower()
    if name in _PLAIN:
        return _Plain()
    if name in ("gzip", "x-gzip"):
        return _Zlib(zlib.MAX_WBITS | 16)
    if name == "deflate":
        return _Deflate()
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _Zstandard()
    raise Undecodable(f"the coding {name!r:.40} is not known")


class _Plain:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data


class _Zlib:
    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._inner = zlib.decompressobj(bits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while data:
                yield self._inner.decompress(data)
                data = self._inner.unused_data
                if data:  # gzip may consist of several members
                    self._inner = zlib.decompressobj(self._bits)
        except zlib.error as problem:
            raise Undecodable(str(problem)) from problem


class _Deflate:
    """`deflate` is zlib's format by the standard, and raw deflate in some programs."""

    def __init__(self) -> None:
        self._inner: _Zlib | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inner is None:
            self._inner = _Zlib(zlib.MAX_WBITS)
            try:
                yield b"".join(self._inner.feed(data))
                return
            except Undecodable:
                self._inner = _Zlib(-zlib.MAX_WBITS)
        yield from self._inner.feed(data)


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            yield self._inner.process(data, output_buffer_limit=_MOST_AT_ONCE)
            while not self._inner.can_accept_more_data():
                yield self._inner.process(b"", output_buffer_limit=_MOST_AT_ONCE)
        except brotli.error as problem:
            raise Undecodable("not brotli") from problem


class _Zstandard:
    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            yield self._inner.decompress(data)
        except zstandard.ZstdError as problem:
            raise Undecodable("not zstd") from problem
