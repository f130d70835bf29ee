"""Serve the viewer on a socket."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from urllib.parse import quote

from compact.archive import Archive
from compact.errors import CompactError, MissingExtra
from compact.tools.viewer.addresses import check_address, is_loopback

PREFERRED_PORT = 5176
"""Next to Ariadne's own 5175. If it is taken, any free port is used."""
_START_S = 10.0


class ViewerServer:
    """Serves the viewer: with `run` until interrupted, or in the background as a context manager.

    Every client needs the token. On loopback a new one is made if none is given. `is_open` serves every user of this machine
    without one.

    Raises:
        ConfigError: other machines can reach the address and no token is given, or it is too weak.
        CompactError: the address or the port is not available.
        MissingExtra: starlette or uvicorn is not installed.
    """

    def __init__(
        self,
        archive: Archive | None,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        token: str | None = None,
        is_open: bool = False,
    ) -> None:
        if token is None and not is_open and is_loopback(host):
            token = secrets.token_urlsafe()
        check_address(host, token)
        try:
            import uvicorn

            from compact.tools.viewer.app import Viewer
            from compact.tools.viewer.hurrying import HurriedProtocol
        except ModuleNotFoundError as error:
            raise MissingExtra.named("viewer", "the viewer") from error
        self.viewer = Viewer(archive, host=host, token=token)
        self._socket = _bind(host, port)
        self.token = token
        """What every client has to send; None if the viewer is open."""
        self._thread: threading.Thread | None = None
        config = uvicorn.Config(
            self.viewer.guarded,
            http=HurriedProtocol,
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=32 * 1024,
            limit_concurrency=128,
        )
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """The address of the page."""
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}"

    @property
    def opening_url(self) -> str:
        """The address to open first, with the token if there is one."""
        return f"{self.url}/?token={quote(self.token)}" if self.token else self.url

    def run(self) -> None:
        """Serve until the process is interrupted; then stop and re-raise the KeyboardInterrupt."""
        with self:
            while self._thread is not None and self._thread.is_alive():
                self._thread.join(timeout=0.5)

    def stop(self) -> None:
        """Stop serving, and close open streams."""
        self.viewer.streams.close()
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=_START_S)

    def __enter__(self) -> ViewerServer:
        self._thread = threading.Thread(target=self._serve, name="compact-viewer", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise CompactError(f"the viewer did not start on {self.url}")
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()


class MountedViewer:
    """The viewer as a part of another server: `app` is served below a path of it, with its lifespan.

    Every client needs the token.

    Raises:
        ConfigError: the token is too weak.
        MissingExtra: starlette is not installed.
    """

    def __init__(self, archive: Archive, *, host: str, token: str | None = None) -> None:
        self.token = secrets.token_urlsafe() if token is None else token
        check_address(host, self.token)
        try:
            from compact.tools.viewer.app import Viewer
        except ModuleNotFoundError as error:
            raise MissingExtra.named("viewer", "the viewer") from error
        self._viewer = Viewer(archive, host=host, token=self.token)
        self.app = self._viewer.guarded


def _bind(host: str, port: int | None) -> socket.socket:
    """Bind the given port, or the preferred one, or any free one if that is taken."""
    wanted = [PREFERRED_PORT, 0] if port is None else [port]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in wanted:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
        except OSError as error:
            found.close()
            problem = error
            continue
        found.listen(128)
        return found
    raise CompactError(
        f"cannot listen on {host}:{wanted[-1]}: {problem.strerror or problem}",
        hint="Name another port with --port, or omit it to use any free port",
    )
