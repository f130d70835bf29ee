"""`compact replay`: recorded sessions, played again under a policy, or several side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from compact.archive import to_line
from compact.config import CompactConfig
from compact.errors import TranscriptError
from compact.tokens.prices import built_in
from compact.tools.cli.files import check_endings, check_outputs, tokens_of, transcripts_in, write_output
from compact.tools.cli.replay_report import as_markdown, print_replay
from compact.tools.cli.shared import JsonOption, LenientOption, console, print_json, report_skipped
from compact.tools.replay import Played, Policy, as_data, read_prices, replay
from compact.tools.replay.engines import engine_named
from compact.tools.replay.page import as_html

EXAMPLE = "Example: compact replay sessions/ --window 32k --compare selective --report report.html"

PRESETS = ("layered", "selective", "progressive")
_WRITERS = (".html", ".json", ".md")
_WORTH_A_PROCESS_BYTES = 400_000


def command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Transcripts of any known format, or folders of them."),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="compact.yaml or .json with the settings, or a preset: layered, selective, progressive. Else: the "
            "current folder's compact.yaml, or the defaults.",
        ),
    ] = None,
    compare: Annotated[
        list[str] | None, typer.Option(metavar="POLICY", help="Another policy, side by side. Repeatable.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="The context window: 32k, 32000. Else the model's.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For this model. Else: the transcript's, the configured one."),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML with dollars for a million tokens, by model.")
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(metavar="OUT", help="Write the report: .html, .json or .md. Repeatable."),
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write what would have been sent, as JSONL: the request after each change of the context, and the last.",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes. Else: one for each core.")
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="Who does the work.")] = "local",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Play recorded sessions turn by turn through the engine, with and without compaction.

    Tokens over time, every step, whether each request is legal and within its budget, what of it a session needed later,
    and what it costs. Nothing is sent anywhere and no archive is written. Exit code 0: every request was fine. 1: one was
    not. 2: bad input or usage.
    """
    chosen = transcripts_in(files)
    check_endings(report or [], _WRITERS)
    read = [*chosen, *(Path(each) for each in (policy, *(compare or []), prices) if each)]
    check_outputs({"--report": report or [], "--requests": [requests] if requests else []}, read, force)
    policies = _policies(policy, compare or [], window)
    with _progress(len(chosen)) as on_played:
        played = replay(
            chosen,
            policies,
            prices=built_in() if prices is None else read_prices(prices),
            model=model,
            engine=engine_named(engine),
            workers=_useful(workers, chosen),
            lenient=lenient,
            keep_requests=requests is not None,
            on_skipped=report_skipped,
            on_played=on_played,
        )
    if not lenient:
        _refuse_unplayable(played)
    _write(played, policies, report or [], requests, force)
    if as_json:
        print_json(as_data(played, policies))
    else:
        print_replay(console(), played)
    if any(one.error or not all(run.passed for run in one.runs) for one in played):
        raise typer.Exit(1)


def _policies(first: str | None, others: Sequence[str], window: str | None) -> list[Policy]:
    """The policies with their names; of two that would have the same name, the later one gets a number."""
    settings: dict[str, Any] = {} if window is None else {"max_context_tokens": tokens_of(window, "--window")}
    found: list[Policy] = []
    for given in (first, *others):
        if given in PRESETS:
            config, name = CompactConfig.preset(given, **settings), given
        else:
            config = CompactConfig.load(None if given is None else Path(given), **settings)
            name = "default" if given is None else Path(given).stem
        taken = [policy.name for policy in found]
        number = 2
        while name in taken:
            name, number = f"{name.rpartition(' ')[0] or name} {number}", number + 1
        found.append(Policy(name, config))
    return found


def _refuse_unplayable(played: Sequence[Played]) -> None:
    for one in played:
        if one.error:
            raise TranscriptError(
                f"cannot read {one.file}: session {one.session}: {one.error}", path=one.file
            )


def _useful(workers: int | None, files: Sequence[Path]) -> int | None:
    """One small file is done before a second process has started."""
    if workers is not None or len(files) > 1:
        return workers
    try:
        return 1 if files[0].stat().st_size < _WORTH_A_PROCESS_BYTES else None
    except OSError:
        return 1


def _write(
    played: Sequence[Played],
    policies: Sequence[Policy],
    outs: Sequence[Path],
    requests: Path | None,
    force: bool,
) -> None:
    for out in outs:
        ending = out.suffix.lower()
        if ending == ".html":
            text = as_html(played)
        elif ending == ".md":
            text = as_markdown(played)
        else:
            text = json.dumps(as_data(played, policies), indent=1) + "\n"
        write_output(out, text.encode("utf-8", "replace"), force)
    if requests is not None:
        write_output(requests, b"".join(_request_lines(played)), force)


def _request_lines(played: Sequence[Played]) -> Iterator[bytes]:
    for one in played:
        for run in one.runs:
            for request in run.requests:
                yield to_line({"session": one.session, "policy": run.policy, **request})


@contextmanager
def _progress(files: int) -> Iterator[Callable[[Played], None] | None]:
    """How many sessions are done, on stderr, when somebody is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replaying", total=files)
        seen: dict[str, int] = {}

        def done(one: Played) -> None:
            seen[one.file] = seen.get(one.file, 0) + 1
            bar.update(task, completed=len(seen) - 1, description=f"{sum(seen.values()):,} sessions replayed")

        yield done
