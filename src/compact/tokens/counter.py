"""Exact counts: `count(text)` equals the length of tiktoken's `encode_ordinary(text)`, for any string.

Two counters give the same numbers. `TiktokenCounter` is always there; `SplintrCounter` (the extra `fast`) is several
times faster and is used only after it passed `selftest` on our own rank files. Both live as long as the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from compact.errors import CompactError, MissingExtra
from compact.tokens.encodings import ENCODINGS, Encoding
from compact.tokens.selftest import first_mismatch

if TYPE_CHECKING:
    import tiktoken

_BLANKS = "\t\v\f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""What the encodings' patterns call whitespace, without the line ends."""
_LONG_RUN = 100_000
"""A run of blanks from which tiktoken is not asked: at a million its regular expression overflows and panics."""
SPLINTR_CACHE_CHARS = 16_000_000
"""How much text splintr may see before its cache of pieces, which is bounded in entries only, is emptied."""


class Counter(Protocol):
    """Counts tokens of text in one encoding. Never raises on a string, whatever is in it."""

    name: str
    """Which package counts: "tiktoken" or "splintr"."""
    encode: Callable[[str], Sized]
    """The package's own function. Safe for short ASCII text; anything else goes through `count`."""
    bytes_per_token: int
    """How many entries of what `encode` returns make one token."""

    def count(self, text: str) -> int:
        """The number of tokens; special tokens in the text are ordinary text."""
        ...


class TiktokenCounter:
    """The reference."""

    name = "tiktoken"
    bytes_per_token = 1

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.encode: Callable[[str], Sized] = _build(encoding, encoding.pattern).encode_ordinary

    def count(self, text: str) -> int:
        """See `Counter.count`."""
        if len(text) < _LONG_RUN:
            return self._plain(text)
        total = start = 0
        for run_start, run_end in _long_blank_runs(text):
            total += self._plain(text[start:run_start])
            # The pattern takes such a run as one piece, but leaves its last blank to the word that follows.
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
        """The same vocabulary without a split: its whole input is one piece."""
        return _build(self._encoding, r"(?s:.+)")


class SplintrCounter:
    """The same numbers from splintr, on our rank files."""

    name = "splintr"
    bytes_per_token = 4

    def __init__(self, encoding: Encoding) -> None:
        import splintr

        pattern = {
            "cl100k_base": splintr.CL100K_BASE_PATTERN,
            "o200k_base": splintr.O200K_BASE_PATTERN,
        }[encoding.name]
        # Without special tokens there is nothing to match: "<|endoftext|>" is ordinary text in every call.
        self._tokenizer = splintr.Tokenizer.from_bytes(encoding.rank_file(), pattern, {})
        self.encode: Callable[[str], Sized] = self._tokenizer.encode_flat
        self._encoding = encoding
        self._seen_chars = 0

    def count(self, text: str) -> int:
        """See `Counter.count`."""
        self._seen_chars += len(text)
        if self._seen_chars > SPLINTR_CACHE_CHARS:
            self._seen_chars = 0
            self._tokenizer.clear_cache()
        try:
            return len(self.encode(text)) // 4  # four bytes a token
        except UnicodeEncodeError:
            return len(self.encode(_without_lone_surrogates(text))) // 4
        except BaseException as problem:
            if not _is_panic(problem):
                raise
        return self._reference.count(text)

    @cached_property
    def _reference(self) -> TiktokenCounter:
        return TiktokenCounter(self._encoding)


def counter_for(encoding: str, fast: bool | None = None) -> Counter:
    """The process's counter of an encoding, loaded at the first call; safe to call from many threads.

    `fast`: None takes splintr where it is installed and passes the self-test, else tiktoken (`why_not_fast` says why);
    True insists on splintr; False takes tiktoken.

    Raises:
        CompactError: the rank file is damaged, or splintr was insisted on and failed the self-test.
        MissingExtra: splintr was insisted on and is not installed.
    """
    with _lock:
        if fast is not False:
            attempt = _attempt(encoding)
            if isinstance(attempt, SplintrCounter):
                return attempt
            if fast:
                raise attempt.with_traceback(None)
        if encoding not in _references:
            _references[encoding] = TiktokenCounter(ENCODINGS[encoding])
        return _references[encoding]


def why_not_fast(encoding: str) -> str:
    """Why splintr does not count this encoding; empty when it does."""
    with _lock:
        attempt = _attempt(encoding)
    return "" if isinstance(attempt, SplintrCounter) else str(attempt)


_lock = Lock()
_references: dict[str, TiktokenCounter] = {}
loaded: dict[str, SplintrCounter | CompactError] = {}
"""The fast counter of each encoding that was asked for, or why there is none."""


def _attempt(encoding: str) -> SplintrCounter | CompactError:
    if encoding not in loaded:
        try:
            loaded[encoding] = _tested_splintr(ENCODINGS[encoding])
        except CompactError as problem:
            loaded[encoding] = problem
    return loaded[encoding]


def _tested_splintr(encoding: Encoding) -> SplintrCounter:
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
    import tiktoken  # never needed where splintr counts

    return tiktoken.Encoding(
        encoding.name, pat_str=pattern, mergeable_ranks=encoding.ranks(), special_tokens={}
    )


def _long_blank_runs(text: str) -> Iterator[tuple[int, int]]:
    """Every run of `_LONG_RUN` or more blanks that no line end follows (a line end takes the run into its piece)."""
    end = 0
    for probe in range(_LONG_RUN - 1, len(text), _LONG_RUN):  # such a run covers a probe
        if probe < end or text[probe] not in _BLANKS:
            continue
        start = end + len(text[end:probe].rstrip(_BLANKS))
        end = len(text) - len(text[probe:].lstrip(_BLANKS))
        if end - start >= _LONG_RUN and text[end : end + 1] not in ("\n", "\r"):
            yield start, end


def _without_lone_surrogates(text: str) -> str:
    """Pairs joined, lone halves replaced: exactly what tiktoken does with such text."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_panic(problem: BaseException) -> bool:
    """Rust's panic arrives as a BaseException of a type that cannot be imported."""
    return type(problem).__name__ == "PanicException"
