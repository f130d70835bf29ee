"""The default archive is used only if it is a folder of this user. One that is named is used as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager, ConfigError

TALK = [{"role": "user", "content": f"{n}: " + "some words " * 50} for n in range(30)]


def compact_here(**archive: str) -> None:
    with CompactManager(CompactConfig(max_context_tokens=8_000, archive=archive)) as manager:
        manager.manual_compact("s", TALK)


@pytest.mark.parametrize("name", [".compact", ".compact/archive"])
def test_a_link_is_refused_unless_it_is_named(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere" / "archive").mkdir(parents=True)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).symlink_to(tmp_path / "elsewhere" / ("archive" if "/" in name else ""))
    with pytest.raises(ConfigError, match=rf"{name} in the current folder is a link") as caught:
        compact_here()
    assert "COMPACT_ARCHIVE__ROOT" in caught.value.hint
    assert list((tmp_path / "elsewhere" / "archive").iterdir()) == []
    compact_here(root=str(tmp_path / ".compact" / "archive"))
    assert list((tmp_path / "elsewhere" / "archive").iterdir())


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compact_here()
    compact_here()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(ConfigError, match=r"\.compact in the current folder belongs to another user"):
        compact_here()
