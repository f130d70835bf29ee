"""Packages that count tokens, beside tiktoken: how fast they are one text at a time, and where their numbers differ.

`toktok-rs` is no dependency; install it to measure it: `pip install toktok-rs`.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from bench import Figure, Skipped, transcripts
from compact.tokens.counter import counter_for

_ENCODING = "o200k_base"
_MOST_CHARS = 10_000_000
_SHORT_CHARS = 60


def bench_splintr() -> Iterator[Figure]:
    """Recorded texts counted by splintr, as the extra `fast` does, against tiktoken."""
    yield from _figures(counter_for(_ENCODING, fast=True).count)


def bench_toktok() -> Iterator[Figure]:
    """Recorded texts counted by the supported function of toktok-rs, against tiktoken."""
    try:
        import toktok  # type: ignore[import-not-found]
    except ImportError as problem:
        raise Skipped("needs toktok-rs, which compact does not use: pip install toktok-rs") from problem

    def count(text: str) -> int:
        found: int = toktok.batch_count((text,), _ENCODING, 1)[0]
        return found

    yield from _figures(count)
    texts = _texts()
    seconds = _seconds(partial(toktok.batch_count, texts, _ENCODING, 1))
    yield Figure(
        "MB per second, all texts in one call", _megabytes(texts) / seconds, "MB/s", 0, at_least=True
    )


def _figures(count: Callable[[str], int]) -> Iterator[Figure]:
    texts, reference = _texts(), counter_for(_ENCODING, fast=False).count
    yield Figure("MB per second, tiktoken", _speed(reference, texts), "MB/s", 0, at_least=True)
    yield Figure("MB per second, text by text", _speed(count, texts), "MB/s", 0, at_least=True)
    short = [text[:_SHORT_CHARS] for text in texts][:5_000]
    each = _seconds(lambda: [count(text) for text in short]) / len(short)
    yield Figure(f"microseconds for a text of {_SHORT_CHARS} characters", each * 1e6, "us", 10)
    yield Figure("recorded texts with another count", sum(count(t) != reference(t) for t in texts), "", 0)
    yield Figure("code points with another count", sum(map(_differs(count, reference), _samples())), "", 0)


def _differs(one: Callable[[str], int], other: Callable[[str], int]) -> Callable[[str], bool]:
    return lambda text: one(text) != other(text)


def _samples() -> Iterator[str]:
    """Every code point beside a contraction, where the class of a character decides how a text is split."""
    return (f"x{chr(point)}'s" for point in range(0x110000) if not 0xD800 <= point < 0xE000)


@cache
def _texts() -> list[str]:
    found: dict[str, None] = {}
    chars = 0
    for path in transcripts():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                for text in _strings(json.loads(line)["messages"]):
                    if chars < _MOST_CHARS and text not in found:
                        found[text] = None
                        chars += len(text)
    return list(found)


def _strings(messages: list[dict[str, Any]]) -> Iterator[str]:
    contents = (message.get("content") for message in messages)
    return (text.encode("utf-8", "replace").decode() for text in contents if isinstance(text, str))


def _speed(count: Callable[[str], int], texts: list[str]) -> float:
    return _megabytes(texts) / _seconds(lambda: [count(text) for text in texts])


def _megabytes(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def _seconds(call: Callable[[], Any]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started
