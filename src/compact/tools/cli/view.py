"""`compact view`: show sessions in the browser, live and from their archive."""

from __future__ import annotations

import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.runtime.manager import CompactManager
from compact.tools.cli.archives import open_at
from compact.tools.cli.demo import demo_session, relive
from compact.tools.cli.options import ConfigOption, TenantOption
from compact.tools.cli.printing import say_plainly
from compact.tools.viewer.addresses import is_loopback
from compact.tools.viewer.serving import ViewerServer

EXAMPLE = "Example: compact view"

_DEMO_WINDOW = 32_000
_DEMO_PAUSE_S = 0.25


def command(
    archive: Annotated[
        Path | None,
        typer.Argument(metavar="[ARCHIVE]", help="Archive folder. Default: the configured one."),
    ] = None,
    tenant: TenantOption = None,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on. Default: only this machine."),
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65535, help="Default: 5176, or any free port.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="COMPACT_VIEW_TOKEN",
            help="Required of every client. Default: a new one. The variable is safer than the option: others cannot see it.",
        ),
    ] = None,
    config: ConfigOption = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token", help="Let every user of this machine read all transcripts. Only on loopback."
        ),
    ] = False,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Watch the session that ships with compact being compacted, live.")
    ] = False,
) -> None:
    """Show sessions in the browser: sizes, steps, traces, and what each step did to every message.

    Also accepts events at /ingest, as Ariadne does.
    """
    if no_token and token is not None:
        raise ConfigError("--no-token and a token exclude each other", hint="Leave one of them out")
    if no_token and not is_loopback(host):
        raise ConfigError(
            f"--no-token is only for loopback addresses, and {host} can be reached from other machines",
            hint="Leave --host out to listen on 127.0.0.1, or set a token in COMPACT_VIEW_TOKEN",
        )
    root = Path(tempfile.mkdtemp(prefix="compact-demo-")) if demo else archive
    with open_at(root, config, tenant=tenant, of_all=demo, may_be_new=True) as found:
        server = ViewerServer(found, host=host, port=port, token=token, is_open=no_token)
        needed = " with tracing.ariadne_token" if server.token else ""
        say_plainly(
            f"Viewer:  {server.opening_url}\n"
            f"Ingest:  {server.url}/ingest  (tracing.ariadne_url{needed})\n"
            f"Archive: {found.address()}\n"
            "Press Ctrl-C to stop."
        )
        if demo and root is not None:
            threading.Thread(target=_run_demo, args=(root,), daemon=True).start()
        if open_browser:
            webbrowser.open(server.opening_url)
        server.run()


def _run_demo(root: Path) -> None:
    settings = {"adapter": "fs", "root": str(root)}
    config = CompactConfig(model="gpt-4o", max_context_tokens=_DEMO_WINDOW, archive=settings, tenant=None)
    with CompactManager(config) as manager:
        relive(manager, demo_session(), pause_s=_DEMO_PAUSE_S)
