"""The ledger in the viewer: what stands after the newest step, without words until somebody asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.engine import turns, user
from support.viewer import ask, manager_on, serving

RULE = "Never push to main."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with manager_on(tmp_path) as made:
        pinned = made.pin("s", "Answer in French.", kind="preference")
        after = list(made.manual_compact("s", [user(RULE), *turns(12), user("Go on.")]))
        made.unpin("s", pinned.id)
        made.manual_compact("s", [*after, *turns(8), user("Go on.")])
        made.pin("s", "Be brief.")
    return tmp_path


def test_the_entries_are_listed_without_their_words(root: Path) -> None:
    with serving(root) as server:
        found = ask(server, "/api/sessions/s/ledger").json()
        assert found["archived"] is True
        assert [
            (e["kind"], e["status"], e["source"], e["said_in"], e["chars"]) for e in found["entries"]
        ] == [
            ("rule", "stands", "user", "m1", len(RULE)),
            ("preference", "withdrawn", "host", "", len("Answer in French.")),
            ("rule", "stands", "host", "", len("Be brief.")),
        ]
        assert all("text" not in entry and "answers" not in entry for entry in found["entries"])
        words = ask(server, f"/api/sessions/s/ledger/{found['entries'][0]['id']}").json()
        assert words["text"] == RULE


def test_an_unknown_entry_and_an_unknown_session_are_404(root: Path) -> None:
    with serving(root) as server:
        for path in ("/api/sessions/s/ledger/e00000000", "/api/sessions/none/ledger"):
            assert ask(server, path).status == 404


@pytest.mark.browser
def test_the_tab_lists_entries_and_reveals_words_on_demand(root: Path, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    with serving(root) as server:
        page.goto(f"{server.url}/#s=s")
        page.click("#tab-ledger")
        page.wait_for_selector(".entry")
        assert page.locator(".entry").count() == 3
        assert page.get_attribute("#tab-ledger", "aria-selected") == "true"
        assert RULE not in page.inner_text("body")
        page.click(".entry >> nth=0")
        page.wait_for_selector("#inspector .reveal")
        assert RULE not in page.inner_text("body")
        page.click("#inspector .reveal")
        page.wait_for_selector("#inspector pre")
        assert RULE in page.inner_text("#inspector")
        page.click("#tab-trace")
        page.wait_for_selector("#trace")
    context.close()
    assert complaints == []
