"""`compact ledger`: what people said in a transcript, and what stands of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from compact.engine.user_words import list_entries
from compact.messages import dialects
from compact.redaction import Redactor
from compact.runtime.services import make_redactor
from compact.summaries.ledger import Entry, to_json
from compact.tools.cli.inputs import errors_named, sessions_of
from compact.tools.cli.options import ConfigOption, DialectOption, FileArgument, JsonOption, LenientOption
from compact.tools.cli.printing import console, count_of, one_line, print_json, print_table
from compact.tools.cli.settings import load_settings
from compact.tools.transcripts import RecordedSession

EXAMPLE = "Example: compact ledger session.jsonl"


def command(
    file: FileArgument,
    dialect: DialectOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """List what people said in a transcript and what stands of it: rules, corrections, choices, answers.

    These are the words that a compaction keeps, with the place where they were said. Secrets are masked.
    """
    redactor = make_redactor(load_settings(config))
    found: list[tuple[RecordedSession, Sequence[Entry]]] = []
    for session in sessions_of(file, lenient):
        with errors_named(session):
            found.append((session, entries_of(session, redactor, dialect)))
    if as_json:
        named = [
            {**to_json(entry), **({"session": session.label} if len(found) > 1 else {})}
            for session, entries in found
            for entry in entries
        ]
        print_json({"entries": named})
        return
    for session, entries in found:
        print_entries(console(), session.label, entries)


def entries_of(session: RecordedSession, redactor: Redactor, dialect: str | None = None) -> tuple[Entry, ...]:
    """Read the ledger of a recorded session.

    Raises:
        MessageError: the messages are not of a known dialect.
    """
    items = redactor.session().redact_messages(session.messages)
    return list_entries(dialects.read(items, dialect or session.dialect)[1])


def print_entries(out: Console, session: str, entries: Sequence[Entry]) -> None:
    """Print the entries in the order of time, and how many of them stand."""
    counted = Counter(entry.status for entry in entries)
    others = [f"{counted[status]:,} {status}" for status in ("replaced", "withdrawn") if counted[status]]
    standing = " and ".join([count_of(counted["stands"], "entry").replace("entrys", "entries"), *others])
    out.print(
        f"Session {one_line(session, 60)}: {standing}"
        if entries
        else f"Session {one_line(session, 60)}: nothing that stands"
    )
    rows = [(_place(entry), entry.kind, _status(entry), _words(entry)) for entry in entries]
    if rows:
        print_table(out, ("said in", "kind", "status", "~words"), rows)


def _place(entry: Entry) -> str:
    return entry.said_in or ("pinned" if entry.source == "host" else "")


def _status(entry: Entry) -> str:
    return f"{entry.status} by {entry.replaced_by}" if entry.replaced_by else entry.status


def _words(entry: Entry) -> str:
    words = one_line(entry.text, 400)
    if entry.answers:
        words += f' (asked: "{one_line(entry.answers, 200)}")'
    return f'{words} (before: "{one_line(entry.was, 200)}")' if entry.was else words
