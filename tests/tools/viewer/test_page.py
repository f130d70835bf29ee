"""The page in a real Chromium, on the archive that the demo's session left."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import background
from support.browser import expect
from support.engine import manager
from support.running import Gate
from support.viewer import (
    BREAKOUT,
    HOSTILE,
    WINDOW,
    ask,
    fill_with_demo_by_hand,
    manager_on,
    opened,
    serving,
    span,
)

from compact.events import Finished, TokenEstimate
from compact.tools.viewer.serving import ViewerServer
from compact.tools.viewer.sessions import trace_key


class Visit:
    """A page that must not complain: everything the browser says about errors is kept."""

    def __init__(self, browser: Any, **options: Any) -> None:
        options.setdefault("viewport", {"width": 1440, "height": 900})
        self._context = browser.new_context(**options)
        self.page: Any = self._context.new_page()
        self.page.set_default_timeout(15_000)
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None,
        )
        self.page.on("request", lambda request: self.requested.append(request.url))

    def close(self) -> None:
        self._context.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    made = Visit(browser)
    yield made
    assert made.complaints == []
    made.close()


def test_the_chart_has_the_limits_and_a_mark_for_each_step_of_the_log(
    visit: Visit, server: ViewerServer, demo_root: Path
) -> None:
    facts = [event.properties for event in opened(demo_root).events("demo")]
    steps = [fact for fact in facts if isinstance(fact, Finished) and fact.outcome == "compacted"]
    calls = [fact for fact in facts if isinstance(fact, TokenEstimate)]
    visit.page.goto(f"{server.url}/#s=demo")
    visit.page.wait_for_selector(".mark")
    marks = visit.page.locator(".mark title").all_text_contents()
    assert marks == [
        f"Step {n}: {step.tokens_before:,} → {step.tokens_after:,} tokens" for n, step in enumerate(steps, 1)
    ]
    assert len(marks) >= 5
    limits = {
        name: int(visit.page.get_attribute(f".limit.{name}", "data-tokens"))
        for name in ("window", "budget", "threshold")
    }
    assert limits == {"window": WINDOW, "budget": WINDOW - 1500, "threshold": int(WINDOW * 0.85)}
    assert f"each of {len(calls)} calls" in visit.page.get_attribute(".plot", "aria-label")
    top, bottom = (float(visit.page.get_attribute(".mark >> nth=0 >> .drop", f"y{n}")) for n in (1, 2))
    assert top < bottom  # a step is a fall


def _kinds(page: Any) -> set[str]:
    rows = page.eval_on_selector_all(
        '#trace .row[aria-level="2"]', "rows => rows.map(row => row.dataset.kind)"
    )
    return set(rows)


def test_the_tree_opens_by_keys_and_shows_what_happened_in_a_call(visit: Visit, server: ViewerServer) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo")
    page.click('[data-filter="steps"]')
    page.wait_for_selector('#trace .row[data-step="1"]')
    page.focus("#trace")
    page.keyboard.press("Home")
    assert page.get_attribute("#trace-0", "aria-expanded") == "false"
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('#trace-0[aria-expanded="true"]')
    assert {"token_estimate", "trigger_decision", "archival", "calls_shrunk"} <= _kinds(page)
    page.keyboard.press("End")  # only rows on the screen exist
    page.wait_for_selector('#trace .row[data-kind="pruned_messages"]')
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#trace", "aria-activedescendant") == "trace-1"
    assert "Tokens" in page.inner_text("#inspector")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector('#trace-0[aria-expanded="false"]')
    assert page.locator('#trace .row[aria-level="2"]').count() == 0


def test_a_bar_shows_how_long_a_part_took_within_its_call(visit: Visit, server: ViewerServer) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo")
    page.click('[data-filter="steps"]')
    page.locator("#trace .twist").first.click()
    page.wait_for_selector('#trace .row[aria-level="2"]')
    shares = page.eval_on_selector_all(
        '#trace .row[aria-level="2"] .track i',
        "bars => bars.map(bar => [parseFloat(bar.style.left), parseFloat(bar.style.width)])",
    )
    assert all(left >= 0 and left + width <= 100.01 for left, width in shares)
    assert sum(width for _, width in shares) > 10
    assert any(left > 1 for left, _ in shares)


def test_the_inspector_shows_policy_and_counts_at_once_and_the_summary_only_when_asked(
    visit: Visit, server: ViewerServer
) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo-by-hand")
    page.wait_for_selector("#trace .row")
    page.click("#trace .row >> nth=1")
    words = page.inner_text("#inspector")
    for expected in ("Policy decision", "manual", "by hand", "task_state", "tokens", "→", "Hidden:"):
        assert expected in words
    assert "COMPACT-SUMMARY" not in page.content()
    asked = [url for url in visit.requested if "/summary" in url or "/events/" in url]
    assert asked == []  # content is not even fetched before somebody asks for it
    page.keyboard.press("r")
    page.wait_for_selector("#inspector .lines")
    assert "<COMPACT-SUMMARY v2>" in page.inner_text("#inspector .lines")
    page.click("#inspector details summary")
    page.wait_for_selector("#inspector details pre")
    raw = json.loads(page.inner_text("#inspector details pre"))
    assert raw["name"] == "compact.finished"
    assert raw["session_id"] == "demo-by-hand"


def test_before_and_after_stand_side_by_side_and_their_words_are_hidden_until_asked_for(
    visit: Visit, server: ViewerServer, demo_root: Path
) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo-by-hand&v=steps&step=2")
    page.wait_for_selector("#pairs .row")
    chips = page.locator(".levels .chip").all_text_contents()
    assert chips == ["17 kept", "210 summarized"]
    assert page.inner_text(".sides").split("\n") == ["Before: 227 messages", "After: 18 messages"]
    first = opened(demo_root).restore("demo-by-hand", 2).messages[0]["content"]
    page.click("#pairs .row >> nth=0")
    page.wait_for_selector("#inspector button.reveal")
    assert first[:60] not in page.content()
    page.locator("#inspector button.reveal").first.click()
    page.wait_for_selector("#inspector .content pre")
    assert page.inner_text("#inspector .content pre").startswith(first[:60])
    page.click('.levels [data-level="summarized"]')
    expect(page.locator("#pairs .row")).to_have_count(17)


def test_a_line_of_a_summary_leads_to_the_archived_message(
    visit: Visit, server: ViewerServer, demo_root: Path
) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo-by-hand&v=steps&step=2")
    page.wait_for_selector("#pairs .row")
    page.click("#pairs .row >> nth=0")
    page.locator("#inspector button.reveal").nth(1).click()
    page.wait_for_selector(".cite")
    said = "so it randomly picks either agent."
    line = page.locator(".lines > div").filter(has_text=said)
    place = int(line.locator(".cite").get_attribute("data-message"))
    message = opened(demo_root).restore("demo-by-hand", 2).messages[place]
    assert message["role"] == "assistant"
    assert said in message["content"]
    line.locator(".cite").click()
    page.wait_for_selector(f'#pairs .row[aria-selected="true"] >> text="#{place + 1}"')
    expect(page.locator("#inspector pre").first).to_contain_text(said)


def test_an_older_summary_leads_on_to_what_it_stood_for(visit: Visit, server: ViewerServer) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo&v=steps&step=9")
    page.wait_for_selector("#pairs .row")
    page.click("#pairs .row >> nth=0")
    page.locator("#inspector button.reveal").first.click()
    page.wait_for_selector(".cite")
    older = page.inner_text("#inspector .lines").split("\n")[0]
    assert older.startswith("<COMPACT-SUMMARY v")
    step = int(older.removeprefix("<COMPACT-SUMMARY v").rstrip(">"))
    page.locator(".cite").last.click()
    page.wait_for_selector(f'.pick [data-step="{step}"][aria-pressed="true"]')
    page.wait_for_selector('#pairs .row[aria-selected="true"][data-level="summarized"]')


def test_a_path_in_a_pointer_opens_the_archived_output(
    visit: Visit, server: ViewerServer, demo_root: Path
) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo-by-hand&v=steps&step=1")
    page.wait_for_selector('#pairs .row[data-level="shrunk"]')
    page.click('.levels [data-level="kept"]')
    expect(page.locator('#pairs .row[data-level="kept"]')).to_have_count(0)
    page.click("#pairs .row >> nth=0")
    page.locator("#inspector button.reveal").nth(1).click()
    page.wait_for_selector("[data-path]")
    path = page.get_attribute("[data-path]", "data-path")
    page.click("[data-path]")
    page.wait_for_selector("#inspector >> text=Archived file")
    page.wait_for_selector("#inspector .content pre")
    whole = opened(demo_root).read_text("demo-by-hand", path)
    assert page.evaluate("document.querySelector('#inspector .content pre').textContent") == whole


def test_events_appear_by_themselves_from_the_archive_and_from_ingest(browser: Any, tmp_path: Path) -> None:
    root = tmp_path / "archive"
    visit = Visit(browser)
    with serving(root) as server, manager_on(root) as manager:
        page = visit.page
        page.goto(server.url)
        page.wait_for_selector("text=No sessions yet")
        manager.preflight("first", [{"role": "user", "content": "Hello."}])
        page.wait_for_selector("#trace .row")
        assert page.locator("#trace .row").count() == 1
        manager.preflight(
            "first", [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Yes?"}]
        )
        page.wait_for_selector("#trace-1")
        calls = page.locator(".tile").nth(3)
        expect(calls).to_contain_text("2")  # without opening the session again
        assert ask(server, "/ingest", span(1)).status == 200
        page.wait_for_selector('.session-row >> text="live-t1"')
        page.click('.session-row >> text="live-t1"')
        page.wait_for_selector("#trace .row >> text=1k tokens")
        ask(server, "/ingest", {"batch": [span(2), span(3)]})
        page.wait_for_selector("#trace-2")
        assert visit.complaints == []
    visit.close()


def test_words_that_look_like_markup_stay_words(visit: Visit, server: ViewerServer) -> None:
    page = visit.page
    page.goto(server.url)
    page.fill("#search", "hostile")
    expect(page.locator("#session-list .row")).to_have_count(1)
    page.click("#session-list .row")
    page.wait_for_selector("#trace .row")
    assert HOSTILE in page.inner_text("h1")
    page.locator("#trace .twist").first.click()
    page.click("#trace .row >> nth=0")
    page.keyboard.press("r")
    page.wait_for_selector("#inspector .lines")
    assert HOSTILE in page.inner_text("#inspector .lines")
    page.click("#inspector details summary")
    page.wait_for_selector("#inspector details pre")
    page.click("#tab-steps")
    page.wait_for_selector("#pairs .row")
    for index in (0, 1, 2):
        page.click(f"#pairs .row >> nth={index}")
        page.locator("#inspector button.reveal").first.click()
        page.wait_for_selector("#inspector .content pre")
        assert any(words in page.inner_text("#inspector") for words in (HOSTILE, BREAKOUT))
    assert page.evaluate("window.hacked") is None
    assert (
        page.locator("main img, aside img, nav img, main script, aside script, main svg[onload]").count() == 0
    )


def test_another_page_can_neither_send_events_nor_read_anything(browser: Any, tmp_path: Path) -> None:
    visit = Visit(browser)
    with serving(tmp_path) as server, serving(tmp_path) as other:
        port = server.url.rpartition(":")[2]
        visit.page.goto(f"{other.url}/healthz".replace("127.0.0.1", "localhost"))  # a page of another origin
        tried = visit.page.evaluate(FORGED, [server.url, json.dumps(span(1))])
        assert tried == ["refused"] * 5
        visit.page.goto(f"http://rebound.example:{port}/api/sessions")
        assert "not this machine" in visit.page.inner_text("body")
        assert ask(server, "/healthz").json()["events"]["count"] == 0
    visit.close()


FORGED = """async ([url, body]) => {
  const attempts = [
    () => fetch(`${url}/api/sessions`).then((answer) => answer.text()),
    () => fetch(`${url}/ingest`, { method: "POST", body, headers: { "content-type": "application/json" } }),
    () => fetch(`${url}/ingest`, { method: "POST", body, mode: "no-cors" }),
    () => new Promise((opened, failed) => {
      const source = new EventSource(`${url}/api/live`);
      source.onopen = opened;
      source.onerror = failed;
    }),
    () => new Promise((loaded, failed) => {
      const script = document.createElement("script");
      Object.assign(script, { src: `${url}/page/main.js`, onload: loaded, onerror: failed });
      document.head.append(script);
    }),
  ];
  const found = [];
  for (const attempt of attempts) {
    try {
      const answer = await attempt();
      // An answer that nobody may read says nothing about what the server did; that is asked afterwards.
      found.push(answer?.type === "opaque" ? "refused" : "served");
    } catch {
      found.push("refused");
    }
  }
  return found;
}"""


def test_the_page_asks_nobody_but_its_own_server(visit: Visit, server: ViewerServer) -> None:
    visit.page.goto(f"{server.url}/#s=demo&v=steps")
    visit.page.wait_for_selector("#pairs .row")
    assert {url.split("/")[2] for url in visit.requested} == {server.url.split("/")[2]}


def test_brackets_go_from_step_to_step(visit: Visit, server: ViewerServer) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo")
    page.wait_for_selector("#trace .row")
    for key, step in (("]", 1), ("]", 2), ("[", 1)):
        page.keyboard.press(key)
        page.wait_for_selector(f'.pick [data-step="{step}"][aria-pressed="true"]')
        page.wait_for_selector(f'.mark.chosen[data-step="{step}"]')


def test_search_finds_by_all_words_and_says_how_many(visit: Visit, server: ViewerServer) -> None:
    page = visit.page
    page.goto(server.url)
    page.wait_for_selector("#session-list .row >> nth=2")
    page.keyboard.press("/")
    page.keyboard.type("DEMO hand")
    expect(page.locator("#session-list .row")).to_have_count(1)
    assert page.inner_text("#session-count") == "1 of 3 sessions"
    page.keyboard.press("ArrowDown")
    page.wait_for_selector('h1 >> text="demo-by-hand"')


def test_ten_thousand_events_scroll_like_two_hundred(browser: Any) -> None:
    visit = Visit(browser)
    with serving(None) as server:
        send_spans(server, "few", 200)
        send_spans(server, "many", 10_000)
        page = visit.page
        page.goto(f"{server.url}/#s={trace_key('few')}")
        expect(page.locator(".tile.spare dd")).to_have_text("200")
        few = page.evaluate(SCROLLED)
        page.goto(f"{server.url}/#s={trace_key('many')}")
        expect(page.locator(".tile.spare dd")).to_have_text("10,000")
        assert page.locator("#trace .row").count() < 60
        assert page.locator(".plot svg *").count() < 60
        page.focus("#trace")
        page.keyboard.press("End")
        page.wait_for_selector("#trace-9999")
        many = page.evaluate(SCROLLED)
        assert many["drawn"] <= few["drawn"] * 4, (few, many)
        assert visit.complaints == []
    visit.close()


def send_spans(server: ViewerServer, trace: str, count: int) -> None:
    spans = (span(n, trace) for n in range(count))
    for batch in iter(lambda: list(itertools.islice(spans, 400)), []):
        assert ask(server, "/ingest", {"batch": batch}).status == 200


SCROLLED = """async () => {
  const box = document.getElementById("trace");
  const next = () => new Promise((done) => requestAnimationFrame(done));
  const times = [];
  for (let n = 0; n < 60; n += 1) {
    const before = performance.now();
    box.scrollTop = (n * 2311) % (box.scrollHeight - box.clientHeight);
    await next();
    await next();
    times.push(performance.now() - before);
  }
  return { drawn: times.sort((a, b) => a - b)[30], worst: times[59] };
}"""


def test_a_lost_server_is_said_and_found_again(browser: Any, tmp_path: Path) -> None:
    visit = Visit(browser)
    fill_with_demo_by_hand(tmp_path)
    with serving(tmp_path) as server:
        visit.page.goto(server.url)
        visit.page.wait_for_selector('#live[data-state="live"]')
        port = int(server.url.rpartition(":")[2])
    visit.page.wait_for_selector('#live[data-state="lost"]')
    with serving(tmp_path, port=port):
        visit.page.wait_for_selector('#live[data-state="live"]')
    visit.close()


@pytest.mark.parametrize("width", [360, 700, 960, 1200])
def test_nothing_is_wider_than_the_window(browser: Any, server: ViewerServer, width: int) -> None:
    visit = Visit(browser, viewport={"width": width, "height": 800})
    page = visit.page
    for place in ("#s=demo", "#s=demo&v=steps"):
        page.goto(f"{server.url}/{place}")
        page.wait_for_selector("#trace .row, #pairs .row")
        page.locator("#trace .row, #pairs .row").nth(1).click()
        page.wait_for_selector("#inspector header")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    visit.close()


def test_the_theme_follows_the_system_and_the_toggle(browser: Any, server: ViewerServer) -> None:
    visit = Visit(browser, color_scheme="dark")
    page = visit.page
    page.goto(server.url)
    page.wait_for_selector("#trace .row")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.keyboard.press("t")
    light = page.evaluate(paper)
    assert (page.text_content("#theme"), light) == ("Theme: light", "rgb(255, 255, 255)")
    page.reload()
    page.wait_for_selector("#trace .row")
    assert page.evaluate(paper) == light != dark
    page.keyboard.press("t")
    assert page.evaluate(paper) == dark
    visit.close()


def test_every_control_has_a_name_and_can_be_reached_by_tab(visit: Visit, server: ViewerServer) -> None:
    page = visit.page
    page.goto(f"{server.url}/#s=demo&v=steps")
    page.wait_for_selector("#pairs .row")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, [tabindex='0']")]
        .filter((node) => node.offsetParent && !(node.textContent.trim() || node.ariaLabel || node.title || node.getAttribute("aria-label")))
        .map((node) => node.outerHTML)"""
    )
    assert nameless == []
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    for wanted in ("search", "session-list", "plot", "tab-trace", "pairs", "theme"):
        assert wanted in reached


def test_a_call_without_an_end_is_running_until_a_later_one_begins(visit: Visit) -> None:
    with serving(None) as server:
        ask(server, "/ingest", span(1, parent_id="killed"))
        visit.page.goto(f"{server.url}/#s={trace_key('t1')}")
        details = visit.page.locator('#trace .row[aria-level="1"] .detail')
        expect(details).to_have_text([re.compile("^running · ")])
        ask(server, "/ingest", span(2, parent_id="later"))
        expect(details).to_have_text([re.compile("^ended without a word · "), re.compile("^running · ")])
        visit.page.click("#trace .row >> nth=0")
        expect(visit.page.locator("#inspector .status")).to_have_text("ended without a word")


def test_a_pass_in_the_background_goes_on_beside_later_calls(visit: Visit, tmp_path: Path) -> None:
    gate = Gate()
    made = manager(background.WINDOW, summarizer=gate, archive={"adapter": "fs", "root": str(tmp_path)})
    items = background.grown(made)
    for _ in range(2):
        made.preflight("s", items)
        items = background.reply_to(items)
    made.flush()
    titles = visit.page.locator('#trace .row[aria-level="1"] .label')
    details = visit.page.locator('#trace .row[aria-level="1"] .detail')
    with serving(tmp_path) as server:
        visit.page.goto(f"{server.url}/#s=s")
        expect(titles).to_have_text(["call 1", "pass in the background 2", "call 3"])
        expect(details.nth(1)).to_have_text(re.compile("^running"))
        gate.let_go.set()
        background.await_ready(made)
        made.preflight("s", items)
        made.flush()
        visit.page.reload()
        expect(titles).to_have_text(["call 1", "pass in the background 2", "call 3", "call 4"])
        expect(details.nth(1)).to_have_text(re.compile("^step 1: "))
        expect(visit.page.locator("#tab-steps")).to_contain_text("1")
