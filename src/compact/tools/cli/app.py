"""The commands together, and how errors become exit codes."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from compact.errors import CompactError
from compact.tools.cli import (
    apply,
    archive,
    check,
    config,
    count,
    demo,
    doctor,
    harness,
    ledger,
    models,
    price,
    proxy,
    regress,
    replay,
    stats,
    tail,
    view,
)
from compact.tools.cli.options import parse_amount
from compact.tools.cli.printing import print_line, say, say_plainly
from compact.tools.transcripts.input_limits import choose_limit

FINE, CHECK_FAILED, BAD_INPUT = 0, 1, 2
_COMMAND_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""Click's ClickException. Newer versions of typer bundle click, older ones depend on it."""
_INTERRUPTED = 130
_CLOSED_PIPE = 141

app = typer.Typer(
    name="compact",
    help="Long LLM-agent sessions: count their tokens, check that a provider would accept them, compact them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _module in (
    count,
    models,
    check,
    apply,
    ledger,
    harness,
    replay,
    price,
    regress,
    proxy,
    view,
    tail,
    stats,
    doctor,
    demo,
):
    app.command(_module.__name__.rpartition(".")[2], epilog=_module.EXAMPLE)(_module.command)
app.add_typer(config.app, name="config")
app.add_typer(archive.app, name="archive")


def _print_version(wanted: bool) -> None:
    if wanted:
        from compact import __version__  # read on demand: looking it up is slow

        print_line(f"compact {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[  # noqa: ARG001  (its callback does the work)
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    max_input: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES",
            help="Read at most so much of a file, such as 500m or 8g. Default: 2g; of gzip, also 50 times its size; and 3 million JSON values.",
        ),
    ] = None,
) -> None:
    if max_input is not None:
        choose_limit(parse_amount(max_input, "--max-input", "bytes like 500m or 8g"))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Errors become one line on stderr."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
        # Transcripts contain any character; one that the terminal cannot show must not end the command.
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        # In a context of its own: what options choose for one run is not left behind for the next.
        code = copy_context().run(app, args=list(arguments), prog_name="compact", standalone_mode=False)
        sys.stdout.flush()
    except CompactError as error:
        return _complain(str(error))
    except _COMMAND_ERROR as error:
        return _explain_usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Click raises SystemExit only when the reader of our output is gone.
        _drop_output()
        return _CLOSED_PIPE
    except OSError as error:
        _drop_output()
        return _complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except RecursionError:
        return _complain("the input is nested too deeply to be worked on")
    except MemoryError:
        return _complain("the input is too large for the memory of this machine")
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = (
            f"unexpected {type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"
        )
        return _complain(f"{what}. This is a bug in compact; please report it")
    return code if isinstance(code, int) else FINE


def _drop_output() -> None:
    """Discard what could not be written. Python would try again at exit, and complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _explain_usage(error: Any) -> int:
    words = str(error.format_message())
    if words.startswith("Usage:"):  # the help of a command without arguments
        say_plainly(words)
        return BAD_INPUT
    context = getattr(error, "ctx", None)
    return _complain(words if context is None else f"{words.rstrip('.')}. Try: {context.command_path} --help")


def _complain(message: str) -> int:
    with contextlib.suppress(BrokenPipeError):
        say(message)
    return BAD_INPUT
