"""The frameworks under test do not trace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.quiet import no_tracing


@pytest.fixture(autouse=True)
def _no_tracing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    with no_tracing():
        yield
