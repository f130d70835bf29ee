"""The folder that nobody named: `.compact` in the current directory, which may be somebody else's."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from compact.errors import ConfigError

ARCHIVE = ".compact/archive"
SPOOL = ".compact/spool"
_VARIABLE = "COMPACT_ARCHIVE__ROOT"


def check_default_root(root: str | os.PathLike[str]) -> None:
    """Check that a default folder, if it exists, is a folder of this user and no link. A named folder is not checked.

    In a shared folder another user could have made it first; a repository could have brought a link that leads elsewhere.

    Raises:
        ConfigError: it is a link, or belongs to another user.
    """
    if os.fspath(root) not in (ARCHIVE, SPOOL):
        return
    for folder in (Path(root).parent, Path(root)):
        try:
            found = folder.lstat()
        except OSError:  # it is not there yet, or opening it will say why it cannot be used
            return
        if stat.S_ISLNK(found.st_mode):
            what = "is a link"
        elif found.st_uid != os.geteuid():
            what = "belongs to another user"
        else:
            continue
        raise ConfigError(
            f"the default archive is not used: {folder} in the current folder {what}",
            hint=f"To trust it, name the folder by its full path: archive.root ({_VARIABLE}), or --root",
            path="archive.root",
        )
