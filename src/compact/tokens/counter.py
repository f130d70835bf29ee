"""Exact counts: `count(text)` equals the length of tiktoken's `encode_ordinary(text)`, for any string without a piece of a million
characters. Long texts are counted part by part, so that memory stays flat; a piece longer than that is cut, which adds a few tokens.

Two counters give the same numbers. `TiktokenCounter` is always available. `SplintrCounter` (the extra `fast`) is several
times faster and is used only after it has passed `selftest` on our own rank files. Both are kept for the whole process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sized
from functools import cache, cached_property
from operator import index
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from compact.errors import CompactError, ConfigError, MissingExtra
from compact.tokens.encodings import ENCODINGS, Encoding
from compact.tokens.selftest import first_mismatch

if TYPE_CHECKING:
    import tiktoken

_BLANKS = "\t\v\f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""The whitespace of the encodings' patterns, without line ends."""
LONG_RUN = 100_000
"""Longer runs of blanks are not passed to tiktoken, whose regular expression panics at about a million."""
PART_CHARS = 250_000
"""Longer texts are counted in parts of at least this length."""
MAX_PART_CHARS = 1_048_576
"""A part is at most this long. A tokenizer takes up to 160 bytes of memory for each character of an unbroken piece."""
_ALWAYS_SPLIT = re.compile(r"[A-Za-z0-9](?=[ \n])")
"""Every encoding splits a text behind such a character, so the counts of both sides add up."""
SPLINTR_CACHE_CHARS = 16_000_000
"""Splintr's cache of pieces is bounded in entries only, so it is cleared after this much text."""


class Counter(Protocol):
    """Counts tokens of text in one encoding. Only a host's own function may raise, whatever the text contains."""

    name: str
    """What counts: "tiktoken", "splintr" or "host"."""
    encode: Callable[[str], Sized]
    """The package's own function. Safe for short ASCII text; anything else goes through `count`."""
    unchecked_chars: float
    """How much more text may go to `encode` directly; then `count` has to clear up."""
    bytes_per_token: int
    """How many entries of what `encode` returns make one token."""

    def count(self, text: str) -> int:
        """Return the number of tokens. Special tokens in the text count as ordinary text."""
        ...


class TiktokenCounter:
    """The reference counter."""

    name = "tiktoken"
    bytes_per_token = 1
    unchecked_chars = float("inf")

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.encode: Callable[[str], Sized] = _build(encoding, encoding.pattern).encode_ordinary

    def count(self, text: str) -> int:
        """See `Counter.count`."""
        return self._count_part(text) if len(text) <= PART_CHARS else sum(map(self._count_part, _parts(text)))

    def _count_part(self, text: str) -> int:
        if len(text) < LONG_RUN:
            return self._plain(text)
        total = start = 0
        for run_start, run_end in _long_blank_runs(text):
            total += self._plain(text[start:run_start])
            # The pattern makes such a run one piece, but leaves its last blank to the following word.
            start = run_end if run_end == len(text) else run_end - 1
            total += len(self._whole.encode_ordinary(text[run_start:start]))
        return total + self._plain(text[start:])

    def _plain(self, text: str) -> int:
        try:
            return len(self.encode(text))
        except BaseException as problem:
            if not _is_panic(problem):
                raise
        if len(text) < 64:
            return len(text.encode("utf-8", "replace"))  # no token is shorter than a byte
        middle = len(text) // 2
        return self._plain(text[:middle]) + self._plain(text[middle:])

    @cached_property
    def _whole(self) -> tiktoken.Encoding:
        """The same vocabulary without splitting: the whole input is one piece."""
        return _build(self._encoding, r"(?s:.+)")


class SplintrCounter:
    """The same counts from splintr, on our rank files."""

    name = "splintr"
    bytes_per_token = 4

    def __init__(self, encoding: Encoding) -> None:
        import splintr

        pattern = {
            "cl100k_base": splintr.CL100K_BASE_PATTERN,
            "o200k_base": splintr.O200K_BASE_PATTERN,
        }[encoding.name]
        # Without special tokens, "<|endoftext|>" is ordinary text in every call.
        self._tokenizer = splintr.Tokenizer.from_bytes(encoding.rank_file(), pattern, {})
        self.encode: Callable[[str], Sized] = self._tokenizer.encode_flat
        self._encoding = encoding
        self.unchecked_chars: float = SPLINTR_CACHE_CHARS

    def count(self, text: str) -> int:
        """See `Counter.count`."""
        return self._count_part(text) if len(text) <= PART_CHARS else sum(map(self._count_part, _parts(text)))

    def _count_part(self, text: str) -> int:
        self.unchecked_chars -= len(text)
        if self.unchecked_chars < 0:
            self.unchecked_chars = SPLINTR_CACHE_CHARS
            self._tokenizer.clear_cache()
        try:
            return len(self.encode(text)) // 4  # four bytes per token
        except UnicodeEncodeError:
            return len(self.encode(_without_lone_surrogates(text))) // 4
        except BaseException as problem:
            if not _is_panic(problem):
                raise
        return self._reference.count(text)

    @cached_property
    def _reference(self) -> TiktokenCounter:
        return TiktokenCounter(self._encoding)


class HostCounter:
    """Counts with a function of the host: `count(text) -> int`."""

    name = "host"
    bytes_per_token = 1
    unchecked_chars = 0.0  # so that every text goes through `count`

    def __init__(self, count: Callable[[str], int]) -> None:
        if not callable(count):
            raise ConfigError(
                f"count_tokens must be a function from a text to a number, got {type(count).__name__}",
                path="count_tokens",
            )
        self._count = count
        self.encode: Callable[[str], Sized] = lambda text: range(self.count(text))

    def count(self, text: str) -> int:
        """Return the host's count.

        Raises:
            ConfigError: the function failed, or did not return a whole number >= 0.
        """
        try:
            found = self._count(text)
        except Exception as problem:
            raise ConfigError(
                f"count_tokens failed with {type(problem).__name__} on a text of {len(text):,} characters",
                hint="It must take any text, the empty one included",
                path="count_tokens",
            ) from problem
        # bool is an int, and numpy's integers are not, but act like one
        if isinstance(found, bool) or not hasattr(found, "__index__") or found < 0:
            raise ConfigError(
                f"count_tokens must return a whole number >= 0, got {found!r:.80} for a text of {len(text):,} characters",
                path="count_tokens",
            )
        return index(found)


def counter_for(encoding: str, fast: bool | None = None) -> Counter:
    """Return the process's counter of an encoding, which is loaded at the first call. Thread-safe.

    With `fast` None, splintr counts if it is installed and passes the self-test, else tiktoken (`why_not_fast` says why).
    True requires splintr, False takes tiktoken.

    Raises:
        CompactError: the rank file is damaged, or splintr is required and failed the self-test.
        MissingExtra: splintr is required and not installed.
    """
    with _lock:
        if fast is not False:
            attempt = try_splintr(encoding)
            if isinstance(attempt, SplintrCounter):
                return attempt
            if fast:
                raise attempt.with_traceback(None)
        return _reference(encoding)


def why_not_fast(encoding: str) -> str:
    """Why splintr does not count this encoding; empty if it does."""
    with _lock:
        attempt = try_splintr(encoding)
    return "" if isinstance(attempt, SplintrCounter) else str(attempt)


_lock = Lock()


@cache
def _reference(encoding: str) -> TiktokenCounter:
    return TiktokenCounter(ENCODINGS[encoding])


@cache
def try_splintr(encoding: str) -> SplintrCounter | CompactError:
    """Return splintr's counter of an encoding, or why there is none. Tried once per process."""
    try:
        return _test_splintr(ENCODINGS[encoding])
    except CompactError as problem:
        return problem


def _test_splintr(encoding: Encoding) -> SplintrCounter:
    try:
        counter = SplintrCounter(encoding)
        mismatch = first_mismatch(encoding.name, counter.count)
    except ImportError as problem:
        raise MissingExtra.named("fast", "counting with splintr") from problem
    except BaseException as problem:
        if not isinstance(problem, Exception) and not _is_panic(problem):
            raise
        mismatch = f"it failed with {type(problem).__name__}: {problem}"
    if mismatch:
        raise CompactError(
            f"splintr does not count {encoding.name} as tiktoken does: {mismatch}",
            hint="Update splintr-rs, or leave `fast` unset",
        )
    return counter


def _build(encoding: Encoding, pattern: str) -> tiktoken.Encoding:
    import tiktoken  # not needed if splintr counts

    return tiktoken.Encoding(
        encoding.name, pat_str=pattern, mergeable_ranks=encoding.ranks(), special_tokens={}
    )


def _parts(text: str) -> Iterator[str]:
    """Cut a long text where the encodings split it anyway, or where a part becomes too long."""
    start = 0
    while start < len(text):
        split = _ALWAYS_SPLIT.search(text, start + PART_CHARS, start + MAX_PART_CHARS)
        end = split.end() if split else start + MAX_PART_CHARS
        yield text[start:end]
        start = end


def _long_blank_runs(text: str) -> Iterator[tuple[int, int]]:
    """Every run of `LONG_RUN` or more blanks without a line end behind it, which would join the run to its piece."""
    end = 0
    for probe in range(LONG_RUN - 1, len(text), LONG_RUN):  # every such run covers a probe
        if probe < end or text[probe] not in _BLANKS:
            continue
        start = end + len(text[end:probe].rstrip(_BLANKS))
        end = len(text) - len(text[probe:].lstrip(_BLANKS))
        if end - start >= LONG_RUN and text[end : end + 1] not in ("\n", "\r"):
            yield start, end


def _without_lone_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates, exactly as tiktoken does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_panic(problem: BaseException) -> bool:
    """A Rust panic is a BaseException whose type cannot be imported."""
    return type(problem).__name__ == "PanicException"
