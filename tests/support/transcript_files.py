"""What the tests of transcript files share: to write one, to read one, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compact.messages import dialects
from compact.tools.transcripts import RecordedSession, read_sessions


def only(path: Path, **options: Any) -> RecordedSession:
    (session,) = read_sessions(path, **options)
    return session


def written(folder: Path, content: Any, name: str = "talk.json") -> Path:
    """A file of one JSON value; of one per line, if it is named so."""
    file = folder / name
    values = content if name.endswith("l") else [content]
    file.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return file


def texts(session: RecordedSession) -> list[str]:
    return [message.text for message in dialects.read(session.messages, session.dialect)[1]]
