"""A store on a host's own filesystem: any object with `write_file(path, content)`.

Records lie in memory. Files that an agent may read are also written to the host's filesystem, under the path that the agent
is told. They count as stored only after the host has taken them: an error of the host is an ArchiveError, and the text
stays in the context.

    /tool_outputs/{tool}_{call}_{sha12}.txt
    /conversation_history/step-001.md               the conversation before a step, as a page
    /conversation_history/step-001_{sha12}.jsonl    the same, one message a line; never overwritten, as its name is its hash

The paths carry no session, so one backend holds the conversations of only one session.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from compact.archive import keys
from compact.archive.records import Record, read_state
from compact.archive.stores.memory import MemoryStore
from compact.archive.stores.port import Created
from compact.errors import ArchiveError, ConfigError


class Backend(Protocol):
    """A host's filesystem. It reports a failed write by raising, or by an answer that is False or carries an error."""

    def write_file(self, path: str, content: str) -> Any:
        """Store a text under an absolute path, replacing what is there."""


class BackendStore(MemoryStore):
    """Records in a dict; every file that an agent may read is in the host's filesystem as well.

    Raises:
        ConfigError: the backend has no `write_file`, or an async one.
    """

    adapter = "backend"

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        if not callable(getattr(backend, "write_file", None)) or inspect.iscoroutinefunction(
            backend.write_file
        ):
            raise ConfigError(
                f"a filesystem backend needs a plain function write_file(path, content); {type(backend).__name__} has none",
                path="archive",
            )
        self._backend = backend
        self._writing = threading.Lock()
        self._owner: str | None = None

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`. A step is created only after the host has taken its conversation.

        Raises:
            ArchiveError: the host did not take a file; nothing is stored.
        """
        folder, _, name = key.partition("/")
        with self._writing:
            if self.read(key) is None:
                if _is_readable(name):
                    self._write(f"/{name}", record.data)
                elif (keys.step_of(name) or ("", 0))[0] == "state":
                    self._write_conversation(folder, record)
            return super().create(key, record)

    def address(self, key: str) -> str:
        """Return the path in the host's filesystem; for records that are not there, a name for people."""
        name = key.partition("/")[2]
        return f"/{name}" if _is_readable(name) else super().address(key)

    def _write_conversation(self, folder: str, state: Record) -> None:
        """Write the step's conversation while it can still be refused. Once the state is created, the step is made."""
        if self._owner not in (None, folder):
            raise ArchiveError(
                f"the conversations of {self._owner} are in this backend; those of {folder} would replace them",
                hint="Give every session its own backend",
                key=folder,
                reason="taken",
            )
        step = read_state(state.data)
        transcript, page = step.files["transcript"], step.files["history"]
        exact = f"{page.name.removesuffix('.md')}_{transcript.sha256[:12]}.jsonl"
        for kind, name in (("transcript", exact), ("history", page.name)):
            self._write(f"/{name}", self.read(f"{folder}/{keys.staged_name(step.attempt, kind)}") or b"")
        self._owner = folder

    def _write(self, path: str, data: bytes) -> None:
        try:
            answer = self._backend.write_file(path, data.decode("utf-8", "replace"))
        except Exception as problem:
            raise _refusal(path, type(problem).__name__) from problem
        if inspect.iscoroutine(answer):
            answer.close()
            raise _refusal(path, "its write_file is async, and a plain function is needed")
        if answer is False or _says_error(answer):
            raise _refusal(path, "its answer is an error")


def _is_readable(name: str) -> bool:
    """Return whether an agent may read a record of that name."""
    return name.startswith((f"{keys.OUTPUTS}/", f"{keys.HISTORY}/")) and not keys.is_hidden(name)


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
