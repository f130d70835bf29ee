"""The pages in a real browser: they load nothing, show what they should, and fit any screen in both schemes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.browser import open_page
from support.harness import message, output, system
from support.replay import long_session, played, policy

from compact.harness import HarnessConfig, stabilize
from compact.tools.harness.markup import cards, document
from compact.tools.harness.writing import SessionReport
from compact.tools.harness.writing import as_html as harness_page
from compact.tools.replay.charts import Series, line_chart, nice_ceiling, short
from compact.tools.replay.page import as_html
from compact.tools.replay.results import Played

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> & \ud800 \x00"


def two_policies() -> Played:
    return played(long_session(16), policy("default"), policy("eager", policy={"trigger_pct": 0.5}))


def test_the_replay_page_in_a_browser(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    found = two_policies()
    file.write_text(as_html([found]))
    for scheme in ("light", "dark"):
        for width in (1180, 390):
            page, told = open_page(browser, file, scheme, width)
            assert told == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (scheme, width)
            assert page.locator("svg").count() == 1
            assert page.locator(".bars .bar").count() == 3
            assert page.locator("polyline").count() == 3
            steps = sum(len(run.steps) for run in found.runs)
            assert page.locator("circle").count() == steps > 2
            text = page.locator("main").inner_text()
            for words in (
                "Replay report",
                "all requests fine",
                "fewer input tokens",
                "window 8k",
                "eager",
            ):
                assert words in text
            assert contrast(page, "h1") > 7
            assert contrast(page, ".card span") > 4
    page.locator("summary", has_text="default: the last request").click()
    assert page.get_by_text("Obey the operator").first.is_visible()


def test_the_harness_page_in_a_browser(browser: Any, tmp_path: Path) -> None:
    given = [system("Dial 5550100"), message("call 12345"), output("x " * 900, id="log")]
    reports = [SessionReport("a.json", "fails", stabilize(given, HarnessConfig(budget=90)).report)]
    reports.append(SessionReport("b.json", "passes", stabilize([message("hi")]).report))
    file = tmp_path / "report.html"
    file.write_text(harness_page(reports))
    page, told = open_page(browser, file, "dark", 390)
    assert told == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    text = page.locator("main").inner_text()
    for words in ("1 of 2", "sessions passed", "holds personal data", "fails", "passes"):
        assert words in text
    page.locator("summary", has_text="1 dropped").click()
    assert page.get_by_text("it needs 903 tokens").is_visible()


def test_a_large_number_stays_in_its_card(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(
        document("Cards", [cards([("12,345,678,901,234,567 of 12,345,678,901,234,567", "x")] * 4)])
    )
    page, _ = open_page(browser, file, "light", 390)
    inside = "[...document.querySelectorAll('.card')].every(card => card.scrollWidth <= card.clientWidth)"
    assert page.evaluate(inside)


def test_nothing_in_a_transcript_becomes_markup(browser: Any, tmp_path: Path) -> None:
    talk = [{"role": "user", "content": HOSTILE.replace("\x00", "")}, {"role": "assistant", "content": "ok"}]
    found = played(
        talk * 40, policy(HOSTILE, window=4_000, policy={"hard_cap_buffer": 100, "trigger_pct": 0.1})
    )
    file = tmp_path / "report.html"
    file.write_text(as_html([found]), errors="replace")
    report = stabilize([message("hi", id=HOSTILE)]).report
    other = tmp_path / "other.html"
    other.write_text(harness_page([SessionReport(HOSTILE, HOSTILE, report)]))
    assert "<script" not in file.read_text() + other.read_text()
    for each in (file, other):
        page, told = open_page(browser, each)
        assert told == []
        assert page.locator("script, img").count() == 0


def test_an_empty_replay_is_a_page_too() -> None:
    assert "0 recorded sessions" in as_html([])
    assert "not played" in as_html([played([{"nonsense": 1}])])


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (950, "950"), (12_000, "12k"), (12_340, "12.3k"), (128_000, "128k"), (7_878_570, "7.9M")],
)
def test_numbers_are_said_shortly(value: int, words: str) -> None:
    assert short(value) == words


def test_an_axis_ends_at_a_round_number_above_every_value() -> None:
    for value in (1, 7, 99, 101, 6_500, 128_000, 136_337, 7_878_570):
        top = nice_ceiling(value)
        assert value <= top <= max(8, value * 2)
        assert top % 4 == 0


def test_a_chart_of_a_very_long_session_stays_small_and_keeps_its_steps() -> None:
    values = [n % 5_000 for n in range(50_000)]
    chart = line_chart([Series("p", "s1", values, marks=[5_000, 10_000])], 6_000, "tokens")
    assert len(chart) < 60_000
    assert chart.count("<circle") == 2


def contrast(page: Any, selector: str) -> float:
    """The contrast of a text against what is behind it, as browsers compute both."""
    ink, back = page.evaluate(
        """selector => {
            const element = document.querySelector(selector);
            let behind = element;
            while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
            return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
        }""",
        selector,
    )
    lights = sorted((_light(ink), _light(back)), reverse=True)
    return (lights[0] + 0.05) / (lights[1] + 0.05)


def _light(colour: str) -> float:
    channels = [int(part) / 255 for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
