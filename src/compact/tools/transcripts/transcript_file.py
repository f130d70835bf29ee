"""A transcript file as JSON values: one per line, or the whole file as one. Plain or gzip."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, Self, TypeAlias

from compact.errors import TranscriptError
from compact.tools.transcripts.input_limits import BoundedStream
from compact.tools.transcripts.recorded_session import Skipped

FORMATS = (
    "a JSON list of messages",
    "a request body or session {'messages': [...]}, alone or one per line",
    "an OpenAI Responses request {'input': [...]}",
    "harness artifacts {'artifacts': [...]}",
    "one message per line",
    "Gemini contents",
    "LangChain messages",
    "session files of Claude Code, Codex, Gemini CLI, opencode, Cline and pi",
    "ChatGPT exports",
    "OpenHands outputs",
    "SWE-agent trajectories",
)
"""The supported formats, in words."""

FORMATS_HINT = "Supported formats: " + "; ".join(FORMATS) + ". Each may be gzipped"

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes read so far and the size of the file."""

STANDARD_INPUT = Path("/dev/stdin")
PROGRESS_STEP_BYTES = 1 << 18
_SNIFFED_BYTES = 8192
_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTAINERS = {
    b"SQLite format 3\x00": (
        "it is an SQLite database",
        "Export the session as JSON first; for opencode: opencode export SESSION > session.json",
    ),
    b"PK\x03\x04": ("it is a ZIP archive", "Unpack it; of a ChatGPT export, name its conversations.json"),
    b"\x28\xb5\x2f\xfd": ("it is compressed with zstd", "Unpack it first: zstd -d FILE"),
}
"""Files that hold transcripts in another wrapping, by how they begin: what they are, and what to do."""
_KEYS_SHOWN = 8
BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading broken gzip data raises."""
UNREADABLE = (ValueError, RecursionError, *BROKEN_GZIP)
"""What reading and parsing a file raises."""


@dataclass(frozen=True, slots=True)
class JsonLine:
    """A JSON value and the line on which it starts."""

    line: int
    value: Any


class TranscriptFile:
    """The JSON values of a file, in order, read as needed.

    A file whose first line is a whole JSON value is read line by line, any other as one value. A bad line raises, or is
    skipped if `lenient`.

    Raises:
        TranscriptError: the file cannot be opened, or a line is not JSON; says which.
    """

    def __init__(self, path: str | os.PathLike[str], lenient: bool, on_progress: Progress | None) -> None:
        self.path = Path(path)
        self.lenient = lenient
        self._reported = 0
        self._skipped: list[Skipped] = []
        self._left_out: Counter[str] = Counter()
        self._line = 0
        self.seen = ""
        """What the first value of the file is, in words."""
        self._file = _open(self.path)
        self._total = os.fstat(self._file.fileno()).st_size
        self._on_progress = on_progress if self._file.seekable() else None
        try:
            self.stream = self._decompress()
            """The decompressed bytes, for readers that do not go line by line."""
        except TranscriptError:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def name(self) -> str:
        """The file's name without its extensions. It is the id of a session that has none."""
        name = self.path.name
        for ending in (".gz", ".jsonl", ".ndjson", ".json", ".traj"):
            name = name.removesuffix(ending)
        return name or self.path.name

    def __iter__(self) -> Iterator[JsonLine]:
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            if not self._skipped:
                fail(self.path, "it is empty")
            return
        try:
            json.loads(first[1])
        except (ValueError, RecursionError):
            second = next(lines, None)
            if second is None or not _is_structure(second[1]):
                yield self._whole(first, second)
                return
            lines = chain((second,), lines)
        for number, text in chain((first,), lines):
            try:
                value = json.loads(text)
            except UNREADABLE as error:
                self.reject(number, describe(error))
                continue
            self.seen = self.seen or in_words(value)
            yield JsonLine(number, value)

    def reject(self, line: int, reason: str) -> None:
        """Refuse a line: raise an error, or skip it if lenient."""
        if not self.lenient:
            fail(self.path, reason, line=line, hint="With lenient (--lenient) such lines are skipped")
        self.note(line, reason)

    def note(self, line: int, reason: str) -> None:
        """Skip a line."""
        self._skipped.append(Skipped(line, reason))

    def leave_out(self, kind: str, count: int = 1) -> None:
        """Count known entries that are not part of the conversation."""
        if count > 0:
            self._left_out[kind] += count

    def take_skipped(self) -> list[Skipped]:
        """Return what was skipped since the last call."""
        taken, self._skipped = self._skipped, []
        return taken

    def take_left_out(self) -> dict[str, int]:
        """Return what was left out since the last call: how many by kind."""
        taken, self._left_out = self._left_out, Counter()
        return dict(taken)

    def _decompress(self) -> BoundedStream:
        def refuse(what: str, hint: str) -> NoReturn:
            fail(self.path, what, hint=hint)

        stream = BoundedStream(self._file, self._file.peek(2)[:2] == _GZIP_MAGIC, refuse)
        try:
            start = stream.peek(_SNIFFED_BYTES)[:_SNIFFED_BYTES]
        except BROKEN_GZIP as error:
            fail(self.path, describe(error))
        for magic, (what, hint) in _CONTAINERS.items():
            if start.startswith(magic):
                fail(self.path, what, hint=hint)
        if start[:2] in _UTF16_MARKS:
            fail(self.path, "it is UTF-16 text", hint="Save it as UTF-8")
        if b"\x00" in start:
            fail(self.path, "it is binary, not text")
        return stream

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that are not blank, with their numbers."""
        while True:
            try:
                raw = self.stream.readline()
            except BROKEN_GZIP as error:
                self.reject(self._line + 1, f"its gzip data is broken from here on: {error}")
                return
            if not raw:
                self._report(final=True)
                return
            self._line += 1
            self._report()
            try:
                text = raw.decode("utf-8-sig" if self._line == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                self.reject(
                    self._line,
                    f"it is not UTF-8 text: byte {error.start + 1} of the line is 0x{raw[error.start]:02x}",
                )
                continue
            if text:
                yield self._line, text

    def _whole(self, first: tuple[int, str], second: tuple[int, str] | None) -> JsonLine:
        """Read the file as one JSON value, spread over several lines."""
        start = "\n" * (first[0] - 1) + first[1]
        if second is not None:
            start += "\n" * (second[0] - first[0]) + second[1] + "\n"
        try:
            value = json.loads(start + self.stream.read().decode("utf-8"))
        except UNREADABLE as error:
            line = getattr(error, "lineno", None)
            fail(self.path, describe(error), line=line, hint=FORMATS_HINT if line else "")
        self.seen = in_words(value)
        return JsonLine(first[0], value)

    def _report(self, final: bool = False) -> None:
        if self._on_progress is None:
            return
        read = self._total if final else min(self._file.tell(), self._total)
        if final or read - self._reported >= PROGRESS_STEP_BYTES:
            self._reported = read
            self._on_progress(read, self._total)


def fail(path: Path, what: str, *, line: int | None = None, hint: str = "") -> NoReturn:
    """Raise the error about a file, or about one of its lines."""
    name = "standard input" if path == STANDARD_INPUT else str(path)
    where = f"{name}, line {line}" if line is not None else name
    raise TranscriptError(f"cannot read {where}: {what}", hint=hint, path=str(path), line=line)


def in_words(value: Any) -> str:
    """Say what a JSON value is: an object with its keys, a list with what its first entry is, or a plain value."""
    if isinstance(value, dict):
        return f"an object with {keys_in_words(value)}"
    if isinstance(value, list):
        return f"a list that begins with {in_words(value[0])}" if value else "an empty list"
    return f"a single {type(value).__name__}"


def keys_in_words(value: dict[str, Any]) -> str:
    """Name the keys of an object, and its type if it says one: `the keys a, b (type 'c')`."""
    names = sorted(map(str, value))
    shown = ", ".join(name[:40] for name in names[:_KEYS_SHOWN]) + (
        ", ..." if len(names) > _KEYS_SHOWN else ""
    )
    kind = value.get("type")
    typed = f" (type {kind[:40]!r})" if isinstance(kind, str) else ""
    return f"the keys {shown}{typed}" if names else "no keys"


def describe(error: Exception) -> str:
    """Say what is wrong with a file, from the error of reading or parsing it."""
    if isinstance(error, json.JSONDecodeError):
        cut_off = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
        # Some messages of the parser end in "at" themselves.
        words = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        return f"its JSON is cut off: {words}" if cut_off else f"it is not JSON: {words}"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text: byte 0x{error.object[error.start]:02x}"
    if isinstance(error, BROKEN_GZIP):
        return f"its gzip data is broken: {error}"
    deep = isinstance(error, RecursionError)
    return "its JSON is nested too deeply" if deep else f"its JSON cannot be read: {error}"


def read_whole(path: Path) -> bytes:
    """Read a file that is no transcript, within the same limits.

    Raises:
        TranscriptError: it cannot be read, or is too large.
    """

    def refuse(what: str, hint: str) -> NoReturn:
        fail(path, what, hint=hint)

    with _open(path) as file:
        try:
            return BoundedStream(file, False, refuse).read()
        except OSError as error:
            fail(path, error.strerror or str(error))


def _open(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except FileNotFoundError:
        fail(path, "there is no such file")
    except IsADirectoryError:
        fail(path, "it is a directory", hint="Name a file in it")
    except OSError as error:
        fail(path, error.strerror or str(error))


def _is_structure(text: str) -> bool:
    """Whether a line is a whole JSON object or list. The second line of JSONL is; that of indented JSON is not."""
    if not text.startswith(("{", "[")):
        return False
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
