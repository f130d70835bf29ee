"""The two drivers of the engine: they serve what a generator asks for, on a thread or on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from compact.stages.base import Asking, Emit, Need

T = TypeVar("T")


def drive(asking: Asking[T], serve: Callable[[Need], Any]) -> T:
    """Runs a piece of work to its end; what serving a need raises is raised where the need was."""
    try:
        need = next(asking)
        while True:
            try:
                answer = serve(need)
            except Exception as problem:
                need = asking.throw(problem)
            else:
                need = asking.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        asking.close()


async def adrive(
    asking: Asking[T], serve: Callable[[Need], Awaitable[Any]], at_once: Callable[[Need], Any]
) -> T:
    """`drive` for an event loop. Events are taken at once; from the first real need on, work happens in threads."""
    try:
        need = next(asking)
        while isinstance(need, Emit):
            need = asking.send(at_once(need))
        while True:
            try:
                answer = await serve(need)
            except Exception as problem:
                need = await asyncio.to_thread(_advanced, asking.throw, problem)
            else:
                need = await asyncio.to_thread(_advanced, asking.send, answer)
            if isinstance(need, _End):
                return need.value  # type: ignore[no-any-return]
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        asking.close()


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a generator, carried out of a thread: StopIteration cannot cross a future."""

    value: Any


def _advanced(step: Callable[[Any], Any], value: Any) -> Any:
    try:
        return step(value)
    except StopIteration as end:
        return _End(end.value)
