"""One readable line for each event, in colour where a person looks, and nothing that a terminal would obey."""

from __future__ import annotations

import io
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.engine import manager, turns
from support.events import EXAMPLES
from support.exporters import busy_session, event_maker

from compact.events import Recovery, Started, Warned
from compact.tracing.exporters.console import ConsoleExporter, line, wants_colour
from compact.tracing.exporters.jsonl import JsonlExporter

NOW = datetime(2026, 1, 1, 12, 30, 0, 5000, tzinfo=UTC)
make = event_maker(lambda: NOW)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_kind_of_event_is_one_line() -> None:
    for properties in EXAMPLES:
        told = line(make(properties).to_json())
        assert "\n" not in told
        assert told.startswith(f"12:30:00.005 s #1 {properties.NAME.removeprefix('compact.')}")
        assert "{" not in told, "no raw values"


def test_a_line_says_how_long_it_took() -> None:
    event = make(EXAMPLES[6], started_at=NOW - timedelta(milliseconds=1234)).to_json()
    assert line(event).endswith("3 messages in 20 tokens, 20.0% of them (1,234 ms)")


@pytest.mark.parametrize("note", ["a\nb", "\x1b[2Jgone", "a\r\x07b", "\u202edesrever", "x" * 5000])
def test_what_an_event_quotes_cannot_steer_a_terminal(note: str) -> None:
    told = line(make(Started(reason="manual", note=note), session_id=note).to_json())
    assert all(character.isprintable() for character in told)
    assert len(told) < 300


def test_colour_only_on_a_terminal_and_unless_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())


def test_a_coloured_line_says_the_same() -> None:
    event = make(Warned(code="spooled", severity="low", message="m")).to_json()
    assert "\x1b[33m" in line(event, colour=True)
    assert re.sub(r"\x1b\[[\d;]*m", "", line(event, colour=True)) == line(event)


def test_the_configured_console_writes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    made = manager(16_000, offload={"large_result_tokens": 2000}, tracing={"exporters": ["console"]})
    made.preflight("s", busy_session())
    made.close()
    shown = capsys.readouterr()
    assert shown.out == ""
    kinds = {told.split()[3] for told in shown.err.splitlines()}
    assert {"token_estimate", "trigger_decision", "summary_created", "pruned_messages", "finished"} <= kinds


def test_a_stream_of_ones_own() -> None:
    stream = io.StringIO()
    made = manager(exporters=[ConsoleExporter(stream)])
    made.preflight("s", turns(1))
    made.close()
    assert "nothing to do: below" in stream.getvalue()
    assert stream is not sys.stderr


def test_a_recovery_without_a_known_limit() -> None:
    told = line(make(Recovery(attempt=2, action="compact", learned_limit=8192)).to_json())
    assert told.endswith("attempt 2: compact, limit 8,192")


def test_all_sessions_in_one_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "all.jsonl"
    made = manager(exporters=[JsonlExporter(path)])
    made.preflight("s", turns(1))
    made.preflight("t", turns(1))
    made.close()
    found = path.read_text("utf-8").splitlines()
    assert len(found) == 4
    assert path.stat().st_mode & 0o777 == 0o600
    logs = b"\n".join([*made.archive.lines("s"), *made.archive.lines("t")]).decode()
    assert "\n".join(found) == logs
