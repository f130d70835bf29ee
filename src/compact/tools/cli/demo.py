"""`compact demo`: the whole job on a real session: replayed, compacted, verified, reported."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console

from compact.archive import Archive
from compact.config import CompactConfig
from compact.runtime.manager import CompactManager
from compact.tokens.prices import built_in
from compact.tools.cli.compaction import Compaction, compact_session
from compact.tools.cli.report import compaction_json, print_levels, print_sizes, print_stages
from compact.tools.cli.shared import (
    JsonOption,
    console,
    counted,
    label,
    number,
    one_line,
    print_json,
    print_table,
    table,
)
from compact.tools.replay import Job, Played, Policy, Summary, play, summarize
from compact.tools.replay.page import as_html
from compact.tools.transcripts import Session, read_sessions

EXAMPLE = "Example: compact demo"

ORIGIN = "A real coding session of a person and an agent (github.com/entireio/cli, MIT)."
MODEL, WINDOW = "gpt-4o", 128_000
SUMMARY_LINES = 6
LINE_CHARS = 76


@dataclass(frozen=True, slots=True)
class _Verified:
    """What was checked of a compaction and its archive."""

    restored: int
    """Messages that the archive gives back as they were before the first step."""
    damaged: int
    """Records of the archive that do not match their checksum."""


def command(as_json: JsonOption = False) -> None:
    """Replay, compact and verify the real coding session that comes with compact, and write a report.

    The archive and the report stay in a new temporary folder, to be looked at.
    """
    session = demo_session()
    folder = Path(tempfile.mkdtemp(prefix="compact-demo-"))
    root, page = folder / "archive", folder / "report.html"
    config = CompactConfig.load(
        model=MODEL, max_context_tokens=WINDOW, archive={"adapter": "fs", "root": str(root)}
    )
    selective = CompactConfig.preset("selective", model=MODEL, max_context_tokens=WINDOW)
    policies = [Policy("default", config), Policy("selective", selective)]
    played = play(Job(file="compact demo", session=session, policies=policies, prices=built_in()))
    page.write_text(as_html([played]), encoding="utf-8", errors="replace")
    with CompactManager(config) as manager:
        steps = _compacted(manager, session)
        verified = _verify(manager.archive, session)
    if as_json:
        _print_json(session, played, steps, verified, root, page)
        return
    out = console()
    _print_replay(out, played)
    _print_compaction(out, steps)
    _print_verified(out, session, played, verified)
    _print_next(out, root, page)


def demo_session() -> Session:
    """The session that comes with compact."""
    with as_file(files("compact.tools.cli") / "demo_session.jsonl.gz") as path:
        (session,) = read_sessions(path)
    return replace(session, id="demo")


def _compacted(manager: CompactManager, session: Session) -> list[Compaction]:
    """The session in one go; by hand too, if pointers were enough and there is no summary to show yet."""
    first = compact_session(manager, session)
    if first.summary is not None:
        return [first]
    return [first, compact_session(manager, replace(session, messages=first.messages), manual=True)]


def _verify(archive: Archive, session: Session) -> _Verified:
    found = archive.restore(session.id, 1).messages
    restored = sum(a == b for a, b in zip(found, session.messages, strict=True))
    return _Verified(restored, len(archive.verify(session.id)))


def _print_json(
    session: Session,
    played: Played,
    steps: Sequence[Compaction],
    verified: _Verified,
    root: Path,
    page: Path,
) -> None:
    print_json(
        {
            "origin": ORIGIN,
            "root": str(root),
            "report": str(page),
            "restored": verified.restored == len(session.messages),
            "damaged": verified.damaged,
            "replay": [asdict(summary) for summary in summarize([played])],
            "steps": [compaction_json(done) for done in steps],
        }
    )


def _print_replay(out: Console, played: Played) -> None:
    summaries = summarize([played])
    out.print(
        f"{ORIGIN}\nIts {counted(len(played.calls), 'model call')} played again, for {MODEL} with {WINDOW:,} tokens:\n"
    )
    rows = table(
        label(""), *map(number, ("input tokens", "saved", "steps", "too long", "cost", "with cache"))
    )
    first = summaries[0]
    without = (f"{first.input_tokens_without:,}", "", "", f"{first.over_window_without}")
    rows.add_row(
        "without compaction", *without, _money(first.cost_without), _money(first.cost_without_cached)
    )
    for summary in summaries:
        rows.add_row(*_policy_row(summary))
    print_table(out, rows)


def _policy_row(summary: Summary) -> tuple[str, ...]:
    numbers = (
        f"{summary.input_tokens:,}",
        f"{summary.saved:.0%}",
        f"{summary.steps}",
        f"{summary.over_budget}",
    )
    return (summary.policy, *numbers, _money(summary.cost), _money(summary.cost_cached))


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
        out.print(f"{counted(folded, 'message')} into a summary, which begins:")
    else:
        out.print("\nThe summary begins:")
    for line in last.summary.splitlines()[:SUMMARY_LINES]:
        out.print(f"  {one_line(line, LINE_CHARS)}".rstrip())
    out.print("  ...")


def _print_verified(out: Console, session: Session, played: Played, verified: _Verified) -> None:
    total, calls = len(session.messages), len(played.calls)
    runs = played.runs
    fine = sum(run.passed for run in runs)
    out.print("\nVerified", style="bold")
    how = "each as it was" if verified.restored == total else "the rest masked"
    out.print(f"  restored from the archive: {verified.restored} of {total} messages, {how}")
    out.print(f"  records of the archive that are damaged: {verified.damaged}")
    out.print(f"  runs whose {calls} requests are all legal and within the budget: {fine} of {len(runs)}")


def _print_next(out: Console, root: Path, page: Path) -> None:
    program = _program()
    out.print("\nThe report, for a browser", style="bold")
    out.print(f"  {page}", soft_wrap=True)
    out.print("\nTry next", style="bold")
    out.print(f"  {program} view {root}", soft_wrap=True)
    out.print(f"  {program} replay YOUR.jsonl --report report.html", soft_wrap=True)


def _money(dollars: float | None) -> str:
    return "" if dollars is None else f"${dollars:,.2f}"


def _program() -> str:
    """The command as a reader of the demo can type it."""
    if shutil.which("compact"):
        return "compact"
    script = Path(sys.executable).with_name("compact")
    if not script.exists():
        return f"{sys.executable} -m compact"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)
