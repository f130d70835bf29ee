"""Where a key may be sent: to the host that it belongs to, and to no other machine in clear."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Who answers at an address."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """The origin of an http or https address; None if it is no such address."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return None
        return cls.made_of(parts.scheme, parts.hostname or "", port)

    @classmethod
    def made_of(cls, scheme: str, host: str, port: int | None) -> Origin | None:
        """An origin of its parts, as an HTTP client has them."""
        if scheme not in _PORTS or not host:
            return None
        return cls(scheme, host.lower().rstrip("."), port or _PORTS[scheme])

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way can read what is sent there: it is encrypted, or stays on this machine."""
        return self.scheme == "https" or is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine. A name counts only if no server decides what it means."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
