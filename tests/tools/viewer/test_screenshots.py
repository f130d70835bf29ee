"""The pictures in docs/images, taken of the real page: `make screenshots`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.data import bundled_sessions
from support.viewer import fill_with_demo, fill_with_demo_by_hand, manager_on, serving

TARGET = os.environ.get("SCREENSHOTS", "")
FOLDER = Path(TARGET).resolve()  # before a test changes the folder it runs in
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TARGET, reason="pictures are taken by: make screenshots"),
]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive where an agent would have it, so that the page shows a path that people know."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)
    root = Path(".compact/archive")
    for session in bundled_sessions()[:6]:
        with manager_on(root, 16_000) as manager:
            try:
                manager.preflight(session["id"], session["messages"], system=session.get("system"))
            except Exception:
                continue
    fill_with_demo_by_hand(root)
    fill_with_demo(root)
    return root


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_the_page(browser: Any, archive: Path, theme: str) -> None:
    folder = FOLDER
    with serving(archive) as server:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=theme)
        page = context.new_page()
        page.goto(f"{server.url}/#s=demo")
        page.click('[data-filter="steps"]')
        page.click("#trace .row >> nth=7")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector('#trace .row[aria-level="2"]')
        page.mouse.move(5, 5)
        page.screenshot(path=str(folder / f"viewer-trace-{theme}.png"))
        page.goto(f"{server.url}/#s=demo&v=steps&step=9")
        page.wait_for_selector("#pairs .row")
        page.click('.pick [data-step="9"]')
        page.click("#pairs .row >> nth=0")
        page.locator("#inspector button.reveal").nth(1).click()
        page.wait_for_selector(".cite")
        page.mouse.move(5, 5)
        page.screenshot(path=str(folder / f"viewer-steps-{theme}.png"))
        context.close()
        narrow = browser.new_context(viewport={"width": 420, "height": 860}, color_scheme=theme)
        page = narrow.new_page()
        page.goto(f"{server.url}/#s=demo")
        page.wait_for_selector("#trace .row")
        page.screenshot(path=str(folder / f"viewer-narrow-{theme}.png"))
        narrow.close()
