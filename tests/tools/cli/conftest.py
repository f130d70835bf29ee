from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _clean_surroundings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No COMPACT_ variable and no compact.yaml of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith("COMPACT_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    # The demo leaves its archive in the folder for temporary files.
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
    monkeypatch.setattr(tempfile, "tempdir", None)
