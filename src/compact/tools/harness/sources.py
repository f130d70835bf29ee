"""Read sessions from files. Artifacts are streamed: a file of any size is read twice and never in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from compact.errors import MessageError, TranscriptError
from compact.messages.dialects import harness as dialect
from compact.tools.harness.artifacts import ArtifactStream, as_artifacts, check_artifact
from compact.tools.harness.json_items import JsonItems
from compact.tools.transcripts import Skipped, fail, is_line_of_a_program, read_sessions
from compact.tools.transcripts.recorded_session import masked
from compact.tools.transcripts.transcript_file import BROKEN_GZIP, UNREADABLE, TranscriptFile, describe

Shape = Literal["lines", "list"]

_OTHER_KEYS = {"role", "messages", "input"}
"""A value with one of these keys is a message or a session."""

_FIRST_LINE_BYTES = 8 << 20
"""A longer first line is not read whole: the file is taken for one long list."""


@dataclass(frozen=True, slots=True)
class SessionSource:
    """One session of a file, as artifacts."""

    file: str
    session: str
    artifacts: Iterable[Mapping[str, Any]]


def sources_of(
    path: Path, lenient: bool = False, on_skipped: Callable[[str, Sequence[Skipped]], None] | None = None
) -> Iterator[SessionSource]:
    """Read the sessions of a file of any supported format, one at a time.

    Args:
        path: The file, plain or gzip. Artifacts, one per line or in one list, are streamed and therefore read twice.
        lenient: Skip lines that cannot be read.
        on_skipped: Called with the lines of a session that were skipped.

    Raises:
        TranscriptError: the file cannot be read, or contains something that is neither an artifact nor a message;
            says which line.
    """
    shape = _shape(path) if path.is_file() else None
    if shape is not None:
        stream = ArtifactFile(path, shape, lenient, on_skipped)
        yield SessionSource(str(path), masked(stream.name), stream)
        return
    for session in read_sessions(path, lenient):
        if session.skipped and on_skipped is not None:
            on_skipped(session.label, session.skipped)
        try:
            artifacts = list(as_artifacts(session.messages, system=session.system))
            for index, item in enumerate(artifacts):
                check_artifact(item, index)
        except MessageError as error:
            raise TranscriptError(
                f"cannot read {path}: session {session.label}: {error.message}",
                hint=error.hint,
                path=str(path),
            ) from error
        if not artifacts:
            fail(path, "it has no artifacts", hint="A context of nothing cannot be checked")
        yield SessionSource(str(path), session.label, artifacts)


class ArtifactFile(ArtifactStream):
    """The artifacts of a file, read from its start on each iteration."""

    def __init__(
        self,
        path: Path,
        shape: Shape,
        lenient: bool = False,
        on_skipped: Callable[[str, Sequence[Skipped]], None] | None = None,
    ) -> None:
        self._path = path
        self._shape = shape
        self._lenient = lenient
        self._on_skipped = on_skipped
        with TranscriptFile(path, lenient, None) as records:
            self.name = records.name

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Iterate over the artifacts.

        Raises:
            TranscriptError: a line or an item is not an artifact; says which.
        """
        with TranscriptFile(self._path, self._lenient, None) as records:
            index = 0
            lines = ((record.line, record.value) for record in records)
            for line, value in lines if self._shape == "lines" else self._list(records):
                problem = _problem(value, index)
                if problem is None:
                    yield value
                    index += 1
                else:
                    records.reject(line, problem)
            skipped = records.take_skipped()
        if skipped and self._on_skipped is not None:
            self._on_skipped(self.name, skipped)
            self._on_skipped = None  # the second pass skips the same lines

    def _list(self, records: TranscriptFile) -> Iterator[tuple[int, Any]]:
        try:
            yield from JsonItems(records.stream.read, "artifacts")
        except UNREADABLE as error:
            fail(self._path, describe(error), line=getattr(error, "lineno", None))


def _problem(value: Any, index: int) -> str | None:
    if not isinstance(value, Mapping):
        return f"it is a single {type(value).__name__}, not an artifact"
    try:
        check_artifact(value, index)
    except MessageError as error:
        return f"it is not an artifact: {error.reason}"
    return None


def _shape(path: Path) -> Shape | None:
    """Detect how a file contains artifacts; None if it contains something else, or several sessions."""
    with TranscriptFile(path, True, None) as records:
        try:
            first = _first_line(records)
        except BROKEN_GZIP:
            return None
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return "list" if first[:1] in ("[", "{") and _begins_with_artifact(path) else None
    return "lines" if _is_artifact(value) else None


def _first_line(records: TranscriptFile) -> str:
    """Read the first line that is not blank, or the beginning of a very long one."""
    while line := records.stream.readline(_FIRST_LINE_BYTES):
        if text := line.decode("utf-8-sig", "replace").strip():
            return text
    return ""


def _begins_with_artifact(path: Path) -> bool:
    with TranscriptFile(path, True, None) as records:
        try:
            _, first = next(iter(JsonItems(records.stream.read, "artifacts")), (0, None))
        except UNREADABLE:
            return False
    return _is_artifact(first)


def _is_artifact(value: Any) -> bool:
    if not isinstance(value, dict) or is_line_of_a_program(value):
        return False
    # A kind of the wrong type also counts, so that the error will be about the kind.
    if isinstance(value.get("kind"), str) or dialect.claim(value):
        return True
    return "kind" in value and not _OTHER_KEYS & value.keys()
