"""A host's own filesystem: any object with `write_file(path, content)`, plain or async, and perhaps `read_file(path)`."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from compact.errors import ArchiveError, ConfigError

_MISSING = re.compile(
    r"\s*(?:error\b|.{0,300}(?:not ?found|no ?such|(?:not|n[’']t) exist|missing|enoent|\b404\b))",
    re.IGNORECASE | re.DOTALL,
)
"""How tools that answer a model say that there is no file."""


class Backend(Protocol):
    """A host's filesystem. It reports a failed write by raising, or by an answer that is False or carries an error.

    If it also has `read_file(path)`, a new process reads the session's state back. Both may be coroutine functions.
    """

    def write_file(self, path: str, content: str) -> Any:
        """Store a text under an absolute path, replacing what is there."""


class HostFiles:
    """Writes and reads the files of a backend. Coroutines run on an event loop of its own, always the same one.

    Raises:
        ConfigError: the backend has no `write_file`.
    """

    def __init__(self, backend: Backend, timeout_s: float) -> None:
        if not callable(getattr(backend, "write_file", None)):
            raise ConfigError(
                f"a filesystem backend needs a function write_file(path, content); {type(backend).__name__} has none",
                path="archive",
            )
        self._backend = backend
        self._reader = getattr(backend, "read_file", None)
        self._loop = _OwnLoop(timeout_s)
        self.can_read = callable(self._reader)

    def write(self, path: str, data: bytes) -> None:
        """Write a file.

        Raises:
            ArchiveError: the host did not take it.
        """
        try:
            answer = self._loop.wait(self._backend.write_file(path, data.decode("utf-8", "replace")))
        except Exception as problem:
            raise _refusal(path, type(problem).__name__) from problem
        if answer is False or _says_error(answer):
            raise _refusal(path, "its answer is an error")

    def read(self, path: str) -> bytes | None:
        """Read a file; None if there is none. An error that nobody can explain ends all reading: nothing can be relied on.

        Raises:
            ArchiveError: the host did not answer, so that nobody knows what is there.
        """
        if not self.can_read or self._reader is None:
            return None
        try:
            answer = self._loop.wait(self._reader(path))
        except LookupError:
            return None
        except Exception as problem:
            if isinstance(problem, FileNotFoundError) or _MISSING.match(
                f"{type(problem).__name__} {problem}"
            ):
                return None
            if not isinstance(problem, OSError):
                self.can_read = False
                return None
            raise ArchiveError(
                f"the host's filesystem did not give {path}: {type(problem).__name__}",
                hint="Look at the object that was given as archive or filesystem_backend",
                key=path,
                reason="backend",
            ) from problem
        if isinstance(answer, bytes | bytearray):
            return bytes(answer)
        return answer.encode("utf-8", "surrogatepass") if isinstance(answer, str) else None

    def close(self) -> None:
        """Stop the event loop, if there is one."""
        self._loop.close()


def says_missing(data: bytes) -> bool:
    """Whether an answer is a text for a model that says that there is no such file."""
    return not data.strip() or _MISSING.match(data[:1000].decode("utf-8", "replace")) is not None


class _OwnLoop:
    """An event loop in a thread, started when it is first needed.

    A host calls from threads and from its own loop, which must not wait for itself. What belongs to a loop, such as a
    connection, stays usable because it is always this one.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wait(self, answer: Any) -> Any:
        """Return an answer, or what it promises."""
        if not inspect.isawaitable(answer):
            return answer
        future = asyncio.run_coroutine_threadsafe(_as_coroutine(answer), self._started())
        try:
            return future.result(self._timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop. May be called twice."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="compact-backend", daemon=True).start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(_cancel_tasks())
    finally:
        loop.close()


async def _cancel_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def _as_coroutine(answer: Awaitable[Any]) -> Any:
    return await answer


def _says_error(answer: Any) -> bool:
    # Hosts whose tools answer a model do not raise. They return a text, or an object that carries an error.
    if isinstance(answer, str):
        return answer.lower().startswith("error")
    error = answer.get("error") if isinstance(answer, Mapping) else getattr(answer, "error", None)
    return bool(error)


def _refusal(path: str, why: str) -> ArchiveError:
    return ArchiveError(
        f"the host's filesystem did not take {path}: {why}",
        hint="Nothing left the context; look at the object that was given as archive or filesystem_backend",
        key=path,
        reason="backend",
    )
