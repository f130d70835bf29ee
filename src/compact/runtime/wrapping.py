"""The registry behind `CompactManager.wrap`: integrations register the client packages that they can wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from compact.errors import ConfigError

__all__ = ["register", "wrap_client"]

C = TypeVar("C")

_wrappers: dict[str, Callable[[Any, Any, str | None], Any]] = {}


def register(package: str, wrapper: Callable[[Any, Any, str | None], Any]) -> None:
    """Wrap clients whose class comes from `package` by `wrapper(manager, client, session_id)`."""
    _wrappers[package] = wrapper


def wrap_client(manager: Any, client: C, session_id: str | None) -> C:
    """Return `client`, wrapped by the wrapper that is registered for its package.

    Raises:
        ConfigError: no wrapper is registered for the client's package, or the client is wrapped already.
    """
    package = type(client).__module__.partition(".")[0]
    if package == __name__.partition(".")[0]:
        raise ConfigError(
            f"wrap takes a client as its package makes it, got one that is wrapped already ({type(client).__name__})",
            hint="Wrap a client once. Its calls take session_id= for further conversations",
            path="client",
        )
    wrapper = _wrappers.get(package)
    if wrapper is not None:
        wrapped: C = wrapper(manager, client, session_id)
        return wrapped
    if not _wrappers:
        raise ConfigError(
            "wrap knows no clients: no client wrapper is registered",
            hint="Import CompactManager from compact, or import compact.integrations.wrappers",
            path="client",
        )
    *others, last = _wrappers
    raise ConfigError(
        f"wrap takes a client of the packages {', '.join(others)} or {last}, got {type(client).__name__}",
        hint="For another client call manager.call(session_id, messages, send)",
        path="client",
    )
