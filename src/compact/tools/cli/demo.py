"""`compact demo`: the whole job on a real session: replay, compact, verify, report."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console

from compact.config import CompactConfig
from compact.messages import dialects
from compact.runtime.manager import CompactManager
from compact.tokens.prices import built_in
from compact.tools.cli.compaction import Compaction, compact_session, print_levels, print_sizes, print_stages
from compact.tools.cli.options import JsonOption
from compact.tools.cli.printing import console, count_of, one_line, print_json, print_table
from compact.tools.cli.settings import load_settings
from compact.tools.replay import Job, Policy, Summary, play, summarize, summary_cells
from compact.tools.replay.page import as_html
from compact.tools.transcripts import RecordedSession, read_sessions
from compact.tools.transcripts.model_calls import model_calls

EXAMPLE = "Example: compact demo"

ORIGIN = "A real coding session of a person and an agent (github.com/entireio/cli, MIT)."
MODEL, WINDOW = "gpt-4o", 128_000
SUMMARY_LINES = 6
LINE_CHARS = 76


def command(as_json: JsonOption = False) -> None:
    """Replay, compact and verify the real coding session that ships with compact, and write a report.

    The archive and the report stay in a new temporary folder, for you to look at.
    """
    session = demo_session()
    folder = Path(tempfile.mkdtemp(prefix="compact-demo-"))
    root, page = folder / "archive", folder / "report.html"
    config = load_settings(
        None, model=MODEL, max_context_tokens=WINDOW, archive={"adapter": "fs", "root": str(root)}
    )
    selective = CompactConfig.preset("selective", model=MODEL, max_context_tokens=WINDOW)
    policies = [Policy("default", config), Policy("selective", selective)]
    played = play(Job(file="compact demo", session=session, policies=policies, prices=built_in()))
    summaries, calls = summarize([played]), len(played.calls)
    page.write_text(as_html([played]), encoding="utf-8", errors="replace")
    with CompactManager(config) as manager:
        steps = _compact(manager, session)
        found = manager.archive.restore(session.id, 1).messages
        restored = sum(a == b for a, b in zip(found, session.messages, strict=True))
        damaged = len(manager.archive.verify(session.id))
    total = len(session.messages)
    if as_json:
        print_json(
            {
                "origin": ORIGIN,
                "root": str(root),
                "report": str(page),
                "restored": restored == total,
                "damaged": damaged,
                "replay": [asdict(summary) for summary in summaries],
                "steps": [done.to_json() for done in steps],
            }
        )
        return
    out = console()
    _print_replay(out, summaries, calls)
    _print_compaction(out, steps)
    out.print("\nVerified", style="bold")
    how = "each as it was" if restored == total else "the rest masked"
    out.print(f"  restored from the archive: {restored} of {total} messages, {how}")
    out.print(f"  records of the archive that are damaged: {damaged}")
    fine = sum(run.passed for run in played.runs)
    out.print(f"  runs whose {calls} requests are all legal and within the budget: {fine} of {len(policies)}")
    out.print("\nThe report, for a browser", style="bold")
    out.print(f"  {page}", soft_wrap=True)
    out.print("\nTry next", style="bold")
    out.print(f"  {program()} view {root}", soft_wrap=True)
    out.print(f"  {program()} replay YOUR.jsonl --report report.html", soft_wrap=True)


def demo_session() -> RecordedSession:
    """Read the session that ships with compact."""
    with as_file(files("compact.tools.cli") / "demo_session.jsonl.gz") as path:
        (session,) = read_sessions(path)
    return replace(session, id="demo")


def relive(manager: CompactManager, session: RecordedSession, *, pause_s: float = 0.0) -> list[Any]:
    """Send a session through a manager with one preflight for each call of its model; return the last context."""
    context: list[Any] = []
    for arrived in arrivals(session):
        context = list(manager.preflight(session.id, [*context, *arrived], **session.request))
        if pause_s:
            time.sleep(pause_s)
    return context


def arrivals(session: RecordedSession) -> Iterator[list[Any]]:
    """Yield what is new before each call of the model: its last message, and all that came after it."""
    messages = session.messages
    _, neutral = dialects.read(messages, session.dialect)
    for start, stop in pairwise(sorted({0, *model_calls(neutral), len(messages)})):
        yield messages[start:stop]


def _compact(manager: CompactManager, session: RecordedSession) -> list[Compaction]:
    """Compact the session. If pointers are enough, compact it by hand too, so that there is a summary to show."""
    first = compact_session(manager, session)
    if first.summary is not None:
        return [first]
    return [first, compact_session(manager, replace(session, messages=first.messages), manual=True)]


def _print_replay(out: Console, summaries: Sequence[Summary], calls: int) -> None:
    out.print(
        f"{ORIGIN}\nIts {count_of(calls, 'model call')} played again, for {MODEL} with {WINDOW:,} tokens:\n"
    )
    columns = ("policy", ">input tokens", ">saved", ">steps", ">over window", ">cost", ">with cache")
    print_table(out, columns, summary_cells(summaries, columns))


def _print_compaction(out: Console, steps: Sequence[Compaction]) -> None:
    first, last = steps[0], steps[-1]
    out.print("\nThe whole session in one call, which no longer fits the window:", style="bold")
    sizes = {"before": first.before, "after preflight": first.after}
    if last is not first:
        sizes["after a manual compaction"] = last.after
    print_sizes(out, sizes)
    print_stages(out, first)
    print_levels(out, first)
    if last.summary is None:
        return
    if last is not first:
        out.print("\nPointers were enough, so there it stopped. Asked to go on, it also folds")
        folded = last.before.messages - last.after.messages + 1
        out.print(f"{count_of(folded, 'message')} into a summary, which begins:")
    else:
        out.print("\nThe summary begins:")
    for line in last.summary.splitlines()[:SUMMARY_LINES]:
        out.print(f"  {one_line(line, LINE_CHARS)}".rstrip())
    out.print("  ...")


def program() -> str:
    """Name the command as a reader of the demo can type it."""
    if shutil.which("compact"):
        return "compact"
    script = Path(sys.executable).with_name("compact")
    if not script.exists():
        return f"{sys.executable} -m compact"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)
