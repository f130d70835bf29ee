"""The archive: keeps everything that was taken out of a context, redacted and restorable.

`open_archive` opens the archive that the settings describe. For tests, use `Archive` on a `MemoryStore`.
"""

from compact.archive.adapters import backend_archive, open_archive
from compact.archive.archive import Archive
from compact.archive.keys import history_path
from compact.archive.log import Listener, LogWatcher, News, last_called
from compact.archive.outputs import StoredOutput
from compact.archive.reading import UNTRUSTED, FileInfo, Listing, Reader, Restored
from compact.archive.records import ArchiveRedactor, FileRef, Record, Scribe, Step, to_line
from compact.archive.steps import Attempt, Taken
from compact.archive.stores.backend import Backend
from compact.archive.stores.memory import MemoryStore
from compact.archive.stores.port import Blob, Store
from compact.archive.upkeep import Pruned
from compact.archive.verifying import Defect

__all__ = [
    "UNTRUSTED",
    "Archive",
    "ArchiveRedactor",
    "Attempt",
    "Backend",
    "Blob",
    "Defect",
    "FileInfo",
    "FileRef",
    "Listener",
    "Listing",
    "LogWatcher",
    "MemoryStore",
    "News",
    "Pruned",
    "Reader",
    "Record",
    "Restored",
    "Scribe",
    "Step",
    "Store",
    "StoredOutput",
    "Taken",
    "backend_archive",
    "history_path",
    "last_called",
    "open_archive",
    "to_line",
]
