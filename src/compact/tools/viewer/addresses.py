"""Addresses that the viewer may listen on. Needs no extra, so that a wrong address is refused first."""

from __future__ import annotations

import ipaddress

from compact.errors import ConfigError

MIN_TOKEN_CHARS = 16


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, token: str | None) -> None:
    """Check that an address is safe to listen on.

    Raises:
        ConfigError: other machines can reach it and there is no token, or the token is too weak.
    """
    if token is not None and (len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable()):
        raise ConfigError(
            f"the token has {len(token)} characters; it needs {MIN_TOKEN_CHARS} or more, printable ASCII",
            hint="Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines, and transcripts are private",
            hint="Leave --host out to listen on 127.0.0.1, or set a token in COMPACT_VIEW_TOKEN",
        )
