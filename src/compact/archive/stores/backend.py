"""A store on a host's own filesystem.

Records lie in memory. What an agent may read is also written to the host's filesystem, under the path that the agent is
told, before the step or the output counts as stored. An error of the host is an ArchiveError, and the text stays in the
context. Several sessions, agents and processes may share a filesystem: a name says what is in the file, so that none of them
writes over another's.

    /tool_outputs/{tool}_{call}_{sha12}.txt
    /conversation_history/{session}_step-001_{sha12}.md       the conversation before a step, as a page
    /conversation_history/{session}_step-001_{sha12}.jsonl    the same, one message a line
    /.compact/{session}/summary-001_{sha12}.json              only where the host can read: the step's summary,
    /.compact/{session}/session.json                          whose folder it is,
    /.compact/{session}/state-001.json                        and the session's state, which makes the step
    /.compact/proof.json                                      the same everywhere: what the host returns is what was written

The files of a tenant lie in the same folders below `/_tenants/{tenant}`.

Where the host can read, a new process continues with the state that the last one left, and a step number belongs to whoever
wrote its state first. Events and attempts are never on the host's filesystem.
"""

from __future__ import annotations

import re
import threading
from contextlib import suppress

from compact.archive import keys
from compact.archive.records import Record, Step, digest, read_state, session_id_in, trust_stored
from compact.archive.stores.host_files import Backend, HostFiles, says_missing
from compact.archive.stores.memory import MemoryStore
from compact.archive.stores.port import Blob, Created
from compact.errors import ArchiveError

__all__ = ["Backend", "BackendStore"]

_RECORDS = ".compact"
_PROOF_PATH, _PROOF = f"/{_RECORDS}/proof.json", b'{"written_by": "compact"}\n'
"""A file by which another process sees whether the host returns what was written."""
_PAGE = re.compile(
    r"(?P<folder>.+)_step-(?P<step>\d{3,})_(?P<sha12>[0-9a-f]{12})\.(?P<ending>md|jsonl)", re.ASCII
)


class BackendStore(MemoryStore):
    """Records in a dict; every file that an agent may read is in the host's filesystem as well.

    Raises:
        ConfigError: the backend has no `write_file`.
    """

    adapter = "backend"

    def __init__(self, backend: Backend, timeout_s: float = 60.0) -> None:
        super().__init__()
        self._host = HostFiles(backend, timeout_s)
        self._writing = threading.RLock()
        self._newest: dict[str, int] = {}
        self._is_proven = False

    @property
    def forgets(self) -> bool:
        """Whether a new process finds nothing of this one, because the host's filesystem cannot be read."""
        if not self._is_proven and self._host.can_read:
            with suppress(ArchiveError):  # nobody knows yet
                there = self._host.read(_PROOF_PATH)
                if there is not None and not says_missing(there):
                    self._host.can_read = there == _PROOF
                self._is_proven = True
        return not self._host.can_read

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`. A step is created only after the host has taken its conversation.

        Raises:
            ArchiveError: the host did not take a file; nothing is stored.
        """
        folder, name = keys.split_key(key)
        with self._writing:
            # The session's own record is the same in every process, so nothing has to be asked for it.
            known = super().read(key) if name == keys.SESSION else self.read(key)
            if known is not None:
                return "same" if digest(known) == record.sha256 else "taken"
            if _is_readable(name):
                path = f"{_place_of(folder)[0]}/{name}"
                if not self._is_free(path, record):
                    return "taken"
                self._host.write(path, record.data)
            elif (keys.step_of(name) or ("", 0))[0] == "state":
                self._write_step(folder, record)
            return super().create(key, record)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`. What an earlier process wrote is read back from the host."""
        folder, name = keys.split_key(key)
        page = _PAGE.fullmatch(name.removeprefix(f"{keys.HISTORY}/"))
        if page and page["folder"] == _place_of(folder)[1]:
            names = keys.file_names(int(page["step"]))
            key = f"{folder}/{names['history' if page['ending'] == 'md' else 'transcript']}"
        found = super().read(key)
        return self._read_back(key) if found is None and self._host.can_read else found

    def blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """See `Store.blobs`. Lists the records of steps that an earlier process made, too."""
        found = {blob.key: blob for blob in super().blobs(folder, prefix)}
        for step in range(1, self._newest_step(folder) + 1 if self._host.can_read else 1):
            for name in (keys.state_name(step), *keys.file_names(step).values()):
                key = f"{folder}/{name}"
                if key not in found and name.startswith(prefix):
                    # Only pages are shown with their size, so only they are read for it.
                    size = len(self.read(key) or b"") if prefix == f"{keys.HISTORY}/" else 0
                    found[key] = Blob(key, size, self._clock())
        return [found[key] for key in sorted(found)]

    def address(self, key: str) -> str:
        """Return the path in the host's filesystem; for records that are not there, a name for people."""
        is_folder = "/" not in key or key.endswith("/")
        path = None if is_folder else self._path_of(*keys.split_key(key))
        return super().address(key) if path is None else path

    def page_path(self, folder: str, step: int, transcript_sha256: str) -> str:
        """See `SharedPages.page_path`."""
        root, session = _place_of(folder)
        return f"{root}/{keys.HISTORY}/{session}_step-{step:03d}_{transcript_sha256[:12]}.md"

    def close(self) -> None:
        """Stop the event loop of an async backend."""
        self._host.close()

    # --- writing

    def _is_free(self, path: str, record: Record) -> bool:
        """Whether nothing else lies under a path. The name carries a hash, but a host may have put anything there."""
        there = self._host.read(path) if self._host.can_read else None
        return there is None or digest(there) == record.sha256 or says_missing(there)

    def _write_step(self, folder: str, state: Record) -> None:
        """Write a step's files while they can still be refused. The state comes last: with it, the step is made."""
        step = read_state(state.data)
        page = self.page_path(folder, step.step, step.files["transcript"].sha256)
        self._host.write(page.removesuffix(".md") + ".jsonl", self._staged(folder, step, "transcript"))
        self._host.write(page, self._staged(folder, step, "history"))
        if self._keeps_records(folder):
            self._host.write(_summary_path(folder, step), self._staged(folder, step, "summary"))
            self._host.write(_record_path(folder, keys.state_name(step.step)), state.data)
            self._newest[folder] = max(step.step, self._newest.get(folder, 0))

    def _keeps_records(self, folder: str) -> bool:
        """Whether the host takes records, too. Some take only the folders of an agent; the session then lives in memory.

        Raises:
            ArchiveError: the host failed for another reason, so that it may take them later.
        """
        if not self._host.can_read:
            return False
        owner = super().read(f"{folder}/{keys.SESSION}") or b""
        try:
            self._host.write(_PROOF_PATH, _PROOF)
            self._host.write(_record_path(folder, keys.SESSION), owner)
        except ArchiveError as problem:
            if isinstance(problem.__cause__, OSError) and not isinstance(problem.__cause__, PermissionError):
                raise
            self._host.can_read = False
        return self._host.can_read

    def _staged(self, folder: str, step: Step, kind: str) -> bytes:
        return super().read(f"{folder}/{keys.staged_name(step.attempt, kind)}") or b""

    # --- reading back

    def _read_back(self, key: str) -> bytes | None:
        """Read a record that an earlier process wrote, and keep it. None if it is not there, or not as it was written."""
        folder, name = keys.split_key(key)
        if keys.is_hidden(name):
            return None
        path = self._path_of(folder, name)
        data = None if path is None else self._host.read(path)
        if data is None or says_missing(data):
            return None
        is_state = (keys.step_of(name) or ("", 0))[0] == "state"
        if not (_is_state(data) if is_state else self._is_as_written(folder, name, data)):
            if is_state or name == keys.SESSION:
                # What it returns is not what was written, so nothing can be read back.
                self._host.can_read = False
            return None
        super().create(key, trust_stored(data))
        return data

    def _is_as_written(self, folder: str, name: str, data: bytes) -> bool:
        if name == keys.SESSION:
            return session_id_in(data) is not None
        known = keys.content_hash(name)
        if known is not None:
            return digest(data).startswith(known)
        step = self._step_of(folder, name)
        kinds = {} if step is None else {ref.name: ref.sha256 for ref in step.files.values()}
        return kinds.get(name) == digest(data)

    def _path_of(self, folder: str, name: str) -> str | None:
        """The path of a record in the host's filesystem; None if it is not kept there."""
        kind, _ = keys.step_of(name) or ("", 0)
        if kind == "state" or name == keys.SESSION:
            return _record_path(folder, name) if self._host.can_read else None
        if not kind and keys.history_step(name) is None:
            return f"{_place_of(folder)[0]}/{name}" if _is_readable(name) else None
        step = self._step_of(folder, name)
        if step is None:
            return None
        if kind == "summary":
            return _summary_path(folder, step) if self._host.can_read else None
        page = self.page_path(folder, step.step, step.files["transcript"].sha256)
        return page.removesuffix(".md") + ".jsonl" if kind else page

    def _step_of(self, folder: str, name: str) -> Step | None:
        """The step that a file belongs to."""
        number = keys.history_step(name) or (keys.step_of(name) or ("", 0))[1]
        data = self.read(f"{folder}/{keys.state_name(number)}")
        return None if data is None else read_state(data)

    def _newest_step(self, folder: str) -> int:
        """The newest step in the host's filesystem. Steps have no gaps, so a few looks are enough."""
        with self._writing:
            known, stride = self._newest.get(folder, 0), 1
            while self._has_step(folder, known + stride):
                known, stride = known + stride, stride * 2
            while stride > 1:
                stride //= 2
                if self._has_step(folder, known + stride):
                    known += stride
            self._newest[folder] = known
            return known

    def _has_step(self, folder: str, step: int) -> bool:
        return self.read(f"{folder}/{keys.state_name(step)}") is not None


def _place_of(folder: str) -> tuple[str, str]:
    """Return where the folders of the session's tenant lie in the host's filesystem, and the session's own name."""
    root, _, session = folder.rpartition("/")
    return (f"/{root}" if root else ""), session


def _record_path(folder: str, name: str) -> str:
    root, session = _place_of(folder)
    return f"{root}/{_RECORDS}/{session}/{name}"


def _summary_path(folder: str, step: Step) -> str:
    return _record_path(folder, f"summary-{step.step:03d}_{step.files['summary'].sha256[:12]}.json")


def _is_readable(name: str) -> bool:
    """Return whether an agent may read a record of that name."""
    return name.startswith((f"{keys.OUTPUTS}/", f"{keys.HISTORY}/")) and not keys.is_hidden(name)


def _is_state(data: bytes) -> bool:
    try:
        read_state(data)
    except ValueError:
        return False
    return True
