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
# Names that end in .example lead to this machine, as a rebound name would.
ARGUMENTS = ["--host-resolver-rules=MAP *.example 127.0.0.1"]


@contextmanager
def chromium() -> Iterator[Any]:
    """Headless Chromium; the test is skipped where it, or playwright, is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    # Chromium refuses to run as root inside its own sandbox.
    arguments = [*ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else ARGUMENTS
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield started
        finally:
            started.close()


def expect(locator: Any) -> Any:
    """Playwright's assertions on a part of a page, which wait until they hold."""
    from playwright.sync_api import expect

    return expect(locator)


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
