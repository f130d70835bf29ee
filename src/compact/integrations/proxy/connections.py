"""The connections of clients: a header section that is too long is refused as such, and a connection can be cut.

A provider that breaks off leaves an answer without an end. Only a connection that breaks off says that to the client.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_with(connections: MutableMapping[Any, Any]) -> type[H11Protocol]:
    """The protocol of uvicorn, which keeps the transports of its clients in `connections`, by their addresses."""

    class Protocol(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connections[self.client] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            connections.pop(self.client, None)
            super().connection_lost(exc)

    return Protocol
