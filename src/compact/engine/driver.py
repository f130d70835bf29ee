"""The driver of the engine: it serves what a generator asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from compact.engine.effects import Asking, Need

T = TypeVar("T")


def drive(asking: Asking[T], serve: Callable[[Need], Any], first: Need | None = None) -> T:
    """Runs a piece of work to its end; what serving a need raises is raised where the need was.

    `first` is a need that the work has asked for already, when somebody else began to run it.
    """
    try:
        need = next(asking) if first is None else first
        while True:
            need = served(asking, serve, need)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        asking.close()


def served(asking: Asking[Any], serve: Callable[[Need], Any], need: Need) -> Need:
    """Serves one need; what the work asks for next.

    Raises:
        StopIteration: it is done.
    """
    try:
        answer = serve(need)
    except Exception as problem:
        return asking.throw(problem)
    return asking.send(answer)
