"""`compact demo`: a real session, compacted before your eyes."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console

from compact.archive import Archive
from compact.cli.compaction import Compaction, compact_session
from compact.cli.report import compaction_json, print_levels, print_places, print_sizes, print_stages
from compact.cli.shared import (
    JsonOption,
    console,
    counted,
    number,
    one_line,
    print_json,
    print_table,
    prose,
    table,
)
from compact.config import CompactConfig
from compact.manager import CompactManager
from compact.transcripts import Session, read_sessions

EXAMPLE = "Example: compact demo"

ORIGIN = "A real coding session of a person and an agent (github.com/entireio/cli, MIT)."
MODEL, WINDOW = "gpt-4o", 128_000
SUMMARY_LINES = 12
LINE_CHARS = 76


def command(as_json: JsonOption = False) -> None:
    """Compact the real coding session that comes with compact, and show what went where.

    The archive stays in a new temporary folder, to be looked at.
    """
    session = demo_session()
    root = tempfile.mkdtemp(prefix="compact-demo-")
    archive = {"adapter": "fs", "root": root}
    config = CompactConfig.load(model=MODEL, max_context_tokens=WINDOW, archive=archive)
    with CompactManager(config) as manager:
        first = compact_session(manager, session)
        by_hand = None
        if first.summary is None:
            by_hand = compact_session(manager, replace(session, messages=first.messages), manual=True)
        restored = _restored(manager.archive, session)
        if as_json:
            steps = [compaction_json(done) for done in (first, by_hand) if done is not None]
            print_json(
                {
                    "origin": ORIGIN,
                    "root": root,
                    "restored": restored == len(session.messages),
                    "steps": steps,
                }
            )
            return
        out = console()
        _print_compactions(out, first, by_hand)
        _print_archive(out, manager.archive, session, restored)
    _print_next(out, root, session)


def demo_session() -> Session:
    """The session that comes with compact."""
    with as_file(files("compact.cli") / "demo_session.jsonl.gz") as path:
        (session,) = read_sessions(path)
    return replace(session, id="demo")


def _print_compactions(out: Console, first: Compaction, by_hand: Compaction | None) -> None:
    out.print(f"{ORIGIN}\nIt no longer fits {MODEL}'s window of {WINDOW:,} tokens. One call makes room:\n")
    sizes = {"before": first.before, "after preflight": first.after}
    if by_hand is not None:
        sizes["after a manual compaction"] = by_hand.after
    print_sizes(out, sizes)
    print_stages(out, first)
    print_levels(out, first)
    print_places(out, first)
    _print_summary(out, first if by_hand is None else by_hand, by_hand is not None)


def _print_summary(out: Console, done: Compaction, is_by_hand: bool) -> None:
    if done.summary is None:
        return
    if is_by_hand:
        out.print("\nPointers were enough, so there it stopped. Asked to go on, it also folds")
        folded = done.before.messages - done.after.messages + 1
        out.print(f"{counted(folded, 'message')} into a summary, which begins:")
    else:
        out.print("\nThe summary begins:")
    for line in done.summary.splitlines()[:SUMMARY_LINES]:
        out.print(f"  {one_line(line, LINE_CHARS)}".rstrip())
    out.print("  ...")


def _print_archive(out: Console, archive: Archive, session: Session, restored: int) -> None:
    rows = table(number("bytes"), prose("file"))
    outputs = [info for info in archive.files(session.id) if info.path.startswith("/tool_outputs/")]
    for step in archive.steps(session.id):
        for ref in archive.step(session.id, step).files.values():
            rows.add_row(f"{ref.bytes:,}", ref.name)
    size = sum(info.size for info in outputs)
    rows.add_row(f"{size:,}", f"tool_outputs/ ({counted(len(outputs), 'file')})")
    print_table(out, rows, "The archive")
    total = len(session.messages)
    if restored == total:
        out.print(f"\nRestored from it, before step 1: {total} of {total} messages, each as it was.")
    else:
        out.print(
            f"\nRestored from it, before step 1: {restored} of {total} messages as they were, the rest masked."
        )


def _print_next(out: Console, root: str, session: Session) -> None:
    program = _program()
    out.print("\nLook further:", style="bold")
    out.print(f"  {program} archive show {session.id} --root {root}", soft_wrap=True)
    out.print(f"  {program} view {root}", soft_wrap=True)
    out.print(f"  {program} apply YOUR.jsonl", soft_wrap=True)


def _restored(archive: Archive, session: Session) -> int:
    """How many messages the archive gives back as they were before the first step."""
    found = archive.restore(session.id, 1).messages
    return sum(a == b for a, b in zip(found, session.messages, strict=True))


def _program() -> str:
    """The command as a reader of the demo can type it."""
    if shutil.which("compact"):
        return "compact"
    script = Path(sys.executable).with_name("compact")
    if not script.exists():
        return f"{sys.executable} -m compact.cli"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)
