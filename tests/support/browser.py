"""A real browser for pages, where there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium; the test is skipped where it, or playwright, is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    # Chromium refuses to run as root inside its own sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with api.sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=arguments)
        try:
            yield found
        finally:
            found.close()


def open_page(found: Any, file: Path, scheme: str = "light", width: int = 1180) -> tuple[Any, list[str]]:
    """The page of a file without a network, and every complaint or request that it makes."""
    context = found.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on("request", lambda request: None if request.url == file.as_uri() else told.append(request.url))
    page.goto(file.as_uri())
    return page, told
