"""The events of all sessions in one file, in addition to each session's own `events.jsonl`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from compact.tracing.exporters.exporter import EventDict, Exporter, Sent, Unavailable


class JsonlExporter(Exporter):
    """Appends each event as a line to a file that only its owner can read."""

    name = "jsonl"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def export(self, events: Sequence[EventDict]) -> Sent:
        """See `Exporter.export`."""
        lines = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as opened:
                opened.write(lines)
        except OSError as problem:
            raise Unavailable(f"{self._path}: {problem}") from problem
        return Sent(len(events))
