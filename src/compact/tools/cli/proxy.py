"""`compact proxy`: keep the sessions of any agent inside their windows, between the agent and its provider."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from compact.integrations.proxy import ProxyServer
from compact.runtime.manager import CompactManager
from compact.tools.cli.options import ConfigOption, RootOption, WindowOption, parse_tokens
from compact.tools.cli.printing import print_line, say_plainly
from compact.tools.cli.settings import load_settings
from compact.tools.viewer.serving import MountedViewer

EXAMPLE = "Example: compact proxy --port 8787, then ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude"
_VIEWER = "/compact"
_SWITCH_S = 0.0005
"""How long a thread with a pass may keep the others waiting: requests of other sessions should not feel it."""

UrlOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="Default: proxy.*_url in the settings.")
]


def command(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on. Default: only this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8787,
    root: RootOption = None,
    config: ConfigOption = None,
    window: WindowOption = None,
    anthropic: UrlOption = None,
    openai: UrlOption = None,
    gemini: UrlOption = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate chain, PEM.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key, PEM.")
    ] = None,
    viewer: Annotated[
        bool,
        typer.Option(
            "--viewer/--no-viewer", help=f"Show the sessions at {_VIEWER}, with a token of its own."
        ),
    ] = True,
) -> None:
    """Pass an agent's requests on to its provider, and keep its sessions inside their windows.

    Set the agent's base URL to the printed address. Keys pass through and are never stored.
    """
    given = {"anthropic_url": anthropic, "openai_url": openai, "gemini_url": gemini}
    changes: dict[str, Any] = {"proxy": {name: url for name, url in given.items() if url is not None}}
    if root is not None:
        changes["archive"] = {"adapter": "fs", "root": str(root)}
    if window is not None:
        changes["windows"] = {"*": parse_tokens(window, "--window")}
    settings = load_settings(config).updated(**{name: value for name, value in changes.items() if value})
    sys.setswitchinterval(_SWITCH_S)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # stop in order: what waits for the archive is written
    with CompactManager(settings) as manager:
        shown = MountedViewer(manager.archive, host=host) if viewer else None
        mount = None if shown is None else (_VIEWER, shown.app)
        server = ProxyServer(manager, host=host, port=port, certificate=tls_cert, key=tls_key, mount=mount)
        with server:
            print_line(f"compact proxy: {server.url}")
            sys.stdout.flush()
            if shown is not None:
                say_plainly(f"Sessions: {server.url}{_VIEWER}/?token={shown.token}\nPress Ctrl-C to stop.")
            server.wait()
