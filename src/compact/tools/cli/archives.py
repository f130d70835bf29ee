"""Open the archive that a command works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from compact.archive import Archive, open_archive
from compact.errors import ArchiveError
from compact.events import Ids, Recorder
from compact.redaction import Redactor, rules_from_config
from compact.tools.cli.settings import load_settings

_NEAR_NAMES = 5
_HINT = "Name its folder with --root, or go to the folder where the agent runs"
_VIEW_HINT = "Name an existing folder, or none: then the viewer waits for the configured archive"


@contextmanager
def open_at(
    root: Path | None,
    file: Path | None = None,
    *,
    tenant: str | None = None,
    of_all: bool = False,
    may_be_new: bool = False,
    writes: bool = False,
) -> Iterator[Archive]:
    """Open the archive in a folder, or the one that the settings name, of `file` if it is given.

    With `may_be_new`, the folder of the settings need not exist yet.

    A command that writes says so, and a bucket is then asked whether it refuses to write over an object. It is the archive
    of a tenant if one is given or configured, unless it is wanted `of_all`.

    Raises:
        ArchiveError: there is no such folder, or no such tenant.
        ConfigError: the tenant is not a name.
    """
    config = load_settings(file)
    settings: dict[str, Any] = config.archive.model_dump()
    if root is not None:
        settings |= {"adapter": "fs", "root": root}
    is_missing = settings["adapter"] == "fs" and not Path(settings["root"]).is_dir()
    if is_missing and not (may_be_new and root is None):
        raise ArchiveError(
            f"there is no archive at {settings['root']}",
            hint=_VIEW_HINT if may_be_new else _HINT,
            key=str(settings["root"]),
            reason="missing",
        )
    rules = config.redaction
    redactor = Redactor(rules_from_config(rules.rules, rules.extra)) if rules.enabled else Redactor.disabled()
    recorder = Recorder(lambda: datetime.now(UTC), Ids("compact archive"))
    with closing(open_archive(redactor, recorder, writes=writes, **settings)) as archive:
        owner = config.tenant if tenant is None else tenant
        yield archive if owner is None or of_all else _part_of(archive, owner, may_be_new or tenant is None)


def _part_of(archive: Archive, tenant: str, may_be_new: bool) -> Archive:
    found = archive.for_tenant(tenant)
    if may_be_new or found.folders():
        return found
    known = archive.tenants()
    near = get_close_matches(tenant, known, _NEAR_NAMES, cutoff=0.5) or known[:_NEAR_NAMES]
    raise ArchiveError(
        f"there is no tenant {tenant!r:.150}",
        hint=f"There are: {', '.join(near)}" if known else "The archive has no tenants",
        key=tenant,
        reason="missing",
    )


def folders_of(archive: Archive, session_id: str | None) -> dict[str, str]:
    """Map folders to session ids: all of them, or the one of a session.

    A session may also be named by its folder, or by its masked id if no other session is listed under it.

    Raises:
        ArchiveError: there is no such session, or several; suggests ids.
    """
    if session_id is None:
        return dict(archive.sessions_by_folder())
    folder = archive.folder(session_id)
    label = archive.session_in(folder)
    if label is not None:
        return {folder: label}
    by_folder = archive.sessions_by_folder()
    listed = {where: name for where, name in by_folder.items() if session_id in (where, name)}
    if len(listed) == 1:
        archive.call(next(iter(listed)), session_id)
        return listed
    if listed:
        raise ArchiveError(
            f"{len(listed)} sessions are listed as {session_id!r:.150}",
            hint=f"Name the folder: {', '.join(sorted(listed)[:_NEAR_NAMES])}",
            key=session_id,
            reason="ambiguous",
        )
    known = sorted(by_folder.values())
    near = get_close_matches(session_id, known, _NEAR_NAMES, cutoff=0.5) or known[:_NEAR_NAMES]
    rest = f" and {len(known) - len(near)} more" if len(near) < len(known) else ""
    raise ArchiveError(
        f"there is no session {session_id!r:.150}",
        hint=f"There are: {', '.join(near)}{rest}" if known else "The archive is empty",
        key=session_id,
        reason="missing",
    )
