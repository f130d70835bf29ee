"""Waiting for something that another thread or process brings about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

WAIT_S = 20.0
"""Longer than anything here takes, also on a busy machine; only a bug waits so long."""


def until(is_so: Callable[[], bool], seconds: float = WAIT_S) -> None:
    """Wait until something is so; fail the test if it never is."""
    give_up = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up, f"it did not come about within {seconds:g} s"
        time.sleep(0.002)


async def auntil(is_so: Callable[[], bool]) -> None:
    """`until`, on an event loop."""
    await asyncio.to_thread(until, is_so)
