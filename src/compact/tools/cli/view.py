"""`compact view`: sessions in the browser, while they run and from their archive."""

from __future__ import annotations

import sys
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from compact.config import CompactConfig
from compact.runtime.manager import CompactManager
from compact.tools.cli.demo import demo_session
from compact.tools.cli.opening import opened
from compact.tools.cli.relive import relive
from compact.tools.viewer.serving import ViewerServer

EXAMPLE = "Example: compact view"

_DEMO_WINDOW = 32_000
_DEMO_PAUSE_S = 0.25


def command(
    archive: Annotated[
        Path | None,
        typer.Argument(metavar="[ARCHIVE]", help="An archive's folder. Else: the configured archive."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen. Another than this machine needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65535, help="Else 5176, or any that is free.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="COMPACT_VIEW_TOKEN",
            help="Asked of everybody who connects. Better in the variable, which others cannot see.",
        ),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Watch the session that comes with compact being compacted, live.")
    ] = False,
) -> None:
    """Show sessions in the browser: sizes, steps, traces, and what each step did to every message.

    Also takes events at /ingest, as Ariadne does.
    """
    root = Path(tempfile.mkdtemp(prefix="compact-demo-")) if demo else archive
    with opened(root, may_be_new=True) as found:
        server = ViewerServer(found, host=host, port=port, token=token)
        sys.stderr.write(
            f"Viewer:  {server.opening_url}\n"
            f"Ingest:  {server.url}/ingest  (tracing.ariadne_url)\n"
            f"Archive: {found.address()}\n"
            "Ctrl-C ends it.\n"
        )
        if demo and root is not None:
            threading.Thread(target=_run_demo, args=(root,), daemon=True).start()
        if open_browser:
            webbrowser.open(server.opening_url)
        server.run()


def _run_demo(root: Path) -> None:
    settings = {"adapter": "fs", "root": str(root)}
    config = CompactConfig(model="gpt-4o", max_context_tokens=_DEMO_WINDOW, archive=settings)
    with CompactManager(config) as manager:
        relive(manager, demo_session(), pause_s=_DEMO_PAUSE_S)
