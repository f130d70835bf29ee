"""Serve the proxy on a socket."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
import time
from pathlib import Path
from typing import Any

from compact.config import ProxyConfig
from compact.errors import CompactError, ConfigError, MissingExtra
from compact.runtime.manager import CompactManager

_START_S = 10.0
_STOP_S = 15.0
_BACKLOG = 512


class ProxyServer:
    """Serves the proxy in the background, as a context manager.

    Only on loopback by default. On an address that other machines reach it needs `proxy.token`, and a certificate: keys of
    providers pass through it.

    Raises:
        ConfigError: other machines reach the address, and the token or the certificate is missing.
        CompactError: the address or the port is not available.
        MissingExtra: uvicorn, httpx, brotli or zstandard is not installed.
    """

    def __init__(
        self,
        manager: CompactManager,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        settings: ProxyConfig | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        mount: tuple[str, Any] | None = None,
    ) -> None:
        settings = manager.config.proxy if settings is None else settings
        _check(host, settings, certificate)
        try:
            import uvicorn

            from compact.integrations.proxy.app import Proxy
            from compact.integrations.proxy.connections import protocol_with
        except ModuleNotFoundError as error:
            raise MissingExtra.named("proxy", "compact proxy") from error
        self.manager = manager
        connections: dict[Any, Any] = {}
        self.app = Proxy(
            manager,
            settings=settings,
            mount=mount,
            drop=lambda client: connections[client].abort() if client in connections else None,
        )
        self._scheme = "http" if certificate is None else "https"
        self._socket = _bind(host, port)
        self._thread: threading.Thread | None = None
        config = uvicorn.Config(
            self.app,
            http=protocol_with(connections),
            ws="none",
            lifespan="on",
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=max(2 * settings.max_header_bytes, 256 * 1024),
            ssl_certfile=None if certificate is None else str(certificate),
            ssl_keyfile=None if key is None else str(key),
        )
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """The address for clients."""
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"{self._scheme}://{shown}:{port}"

    def wait(self) -> None:
        """Wait until the server ends, or the process is interrupted."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(timeout=0.5)

    def __enter__(self) -> ProxyServer:
        self._thread = threading.Thread(target=self._serve, name="compact-proxy", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise CompactError(f"the proxy did not start on {self.url}")
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=_STOP_S)

    def _serve(self) -> None:
        asyncio.run(self._serve_and_close())

    async def _serve_and_close(self) -> None:
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()
            await self.app.close()


def _check(host: str, settings: ProxyConfig, certificate: Path | None) -> None:
    if _is_loopback(host):
        return
    if settings.token is None:
        raise ConfigError(
            f"{host} can be reached from other machines, and there is no token",
            hint="Leave --host out to listen on 127.0.0.1, or set COMPACT_PROXY__TOKEN; clients send it as X-Compact-Token",
            path="proxy.token",
        )
    if certificate is None:
        raise ConfigError(
            f"{host} can be reached from other machines, and keys would go there in clear",
            hint="Leave --host out to listen on 127.0.0.1, or name a certificate: --tls-cert FILE --tls-key FILE",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio sends small pieces at once. Otherwise each first byte waits 40 ms for an acknowledgement.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise CompactError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint="Name another port with --port, or 0 for any free one",
        ) from error
    found.listen(_BACKLOG)
    return found
