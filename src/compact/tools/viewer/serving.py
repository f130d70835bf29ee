"""The viewer on a socket."""

from __future__ import annotations

import socket
import threading
import time
from types import TracebackType

from compact.archive import Archive
from compact.errors import CompactError, MissingExtra
from compact.tools.viewer.guarding import check_address

PREFERRED_PORT = 5176
"""Beside Ariadne's own 5175; where it is taken, any free one."""
_START_S = 10.0


class ViewerServer:
    """Serves the viewer: `run` until a signal ends it, or as a context manager in the background.

    Raises:
        ConfigError: the address can be reached from other machines and there is no token.
        CompactError: the address or the port cannot be had.
        MissingExtra: starlette or uvicorn is not installed.
    """

    def __init__(
        self,
        archive: Archive | None,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        token: str | None = None,
    ) -> None:
        check_address(host, token)
        try:
            import uvicorn

            from compact.tools.viewer.app import Viewer
        except ModuleNotFoundError as error:
            raise MissingExtra.named("viewer", "the viewer") from error
        self.viewer = Viewer(archive, host=host, token=token)
        self._socket = _bound(host, port)
        self._token = token
        self._thread: threading.Thread | None = None
        config = uvicorn.Config(
            self.viewer.guarded,
            http="h11",
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
        """The page's address."""
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}"

    @property
    def opening_url(self) -> str:
        """The address to open first: with the token, where there is one."""
        return f"{self.url}/?token={self._token}" if self._token else self.url

    def run(self) -> None:
        """Serves until the process is interrupted; then ends it and raises the KeyboardInterrupt on."""
        with self:
            while self._thread is not None and self._thread.is_alive():
                self._thread.join(timeout=0.5)

    def stop(self) -> None:
        """Ends it. Open streams are closed, so nobody waits for them."""
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

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()


def _bound(host: str, port: int | None) -> socket.socket:
    """A socket on the port, or on the preferred one, or, where that is taken, on any."""
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
        hint="Name another port with --port, or leave it out: then a free one is taken",
    )
