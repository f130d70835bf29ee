"""What the tests of the recall tools share."""

from __future__ import annotations

import re

from compact.archive import Archive
from compact.archive.recall import AnswerLimits

SMALL = AnswerLimits(max_chars=6_000, max_lines=10, max_line_chars=100, max_matches=5)
MARKER = "[compact recovery] "


def put(archive: Archive, text: str, session_id: str = "s", call: str = "c") -> str:
    return archive.put_output(session_id, text, tool_name="bash", tool_call_id=call).path


def numbered(answer: str) -> dict[int, str]:
    """The lines of an answer of read_file, by number."""
    rows = [re.fullmatch(r" *(\d+)\t(.*)", line, re.DOTALL) for line in answer.split("\n")]
    return {int(row[1]): row[2] for row in rows if row}
