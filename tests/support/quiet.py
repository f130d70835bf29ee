"""The frameworks' own tracing, switched off while tests run that do not look at it: nothing leaves this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_tracing() -> Iterator[None]:
    """The SDK reads its variable once in a process, so it is told by its function, before and after."""
    from agents import set_tracing_disabled

    set_tracing_disabled(True)
    try:
        yield
    finally:
        set_tracing_disabled(False)
