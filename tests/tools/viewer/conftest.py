from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.viewer import (
    fill_with_demo,
    fill_with_demo_by_hand,
    fill_with_hostile,
    serving,
)

from compact.tools.viewer.serving import ViewerServer


@pytest.fixture(scope="session")
def demo_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with the demo's session in it, made by the engine; and one with hostile words."""
    root = tmp_path_factory.mktemp("viewer") / "archive"
    fill_with_demo_by_hand(root)
    fill_with_hostile(root)
    fill_with_demo(root)
    return root


@pytest.fixture(scope="session")
def server(demo_root: Path) -> Iterator[ViewerServer]:
    with serving(demo_root) as made:
        yield made
