"""When a policy cannot go on: every figure counts the calls that all policies finished, and it is said who stopped where."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from support.replay import long_session, policy, session

from compact.messages import dialects
from compact.tokens import Meter
from compact.tokens.prices import built_in
from compact.tools.cli.app import run as run_command
from compact.tools.pricing.billing import Sent, bill
from compact.tools.replay import Job, Played, Policy, as_data, play, summarize, summary_cells
from compact.tools.replay.page import as_html, as_markdown
from compact.tools.replay.regress import Allowance, changes, read_report

POLICIES = {
    "small": policy("small", 8_000),
    "middle": policy("middle", 16_000),
    "large": policy("large", 64_000),
}


def growing_prompt() -> list[dict[str, Any]]:
    """A session in which more and more must stay: too much for 8,000 tokens at one call, for 16,000 at a later one."""
    talk = long_session(24, words=40)
    for place, words in ((40, 7_500), (70, 8_000)):
        talk.insert(place + 1, {"role": "system", "content": "rule " * words})
    return talk


def played(*policies: Policy) -> Played:
    recorded = session(growing_prompt(), "s")
    return play(Job(file="f", session=recorded, policies=policies, prices=built_in()))


@pytest.fixture(scope="module")
def alone() -> dict[str, Played]:
    return {name: played(each) for name, each in POLICIES.items()}


def test_the_policies_stop_at_different_calls(alone: dict[str, Played]) -> None:
    """Otherwise this file would prove nothing."""
    stops = [alone[name].runs[0].stopped_at for name in POLICIES]
    assert stops[0] is not None
    assert stops[1] is not None
    assert 0 < stops[0] < stops[1]
    assert stops[2] is None


@pytest.mark.parametrize("names", [["small"], *permutations(POLICIES, 2), list(POLICIES)], ids="-".join)
def test_every_figure_counts_the_calls_that_all_finished(alone: dict[str, Played], names: list[str]) -> None:
    found = played(*(POLICIES[name] for name in names))
    finished = min(len(alone[name].runs[0].sent) for name in names)
    assert found.compared == finished < len(found.calls)
    card = built_in().card("gpt-4o")
    assert card is not None

    def cost(sizes: Sequence[int], same: Sequence[int]) -> float:
        """Without times every cache stays warm. The replies are paid once."""
        sent = [Sent(tokens=size, unchanged=one) for size, one in zip(sizes, same, strict=True)]
        return bill([*sent, Sent(tokens=0, unchanged=0, output=output)], card).cost

    meter, talk = Meter("gpt-4o"), growing_prompt()
    written = [m for m in talk[found.calls[0] : found.calls[finished]] if m["role"] == "assistant"]
    output = meter.scale(sum(meter.count_item(m, dialects.get("chat")) for m in written))
    without = sum(found.without[:finished])
    plain = [Sent(tokens=size, unchanged=0, fresh=size) for size in found.without[:finished]]
    assert found.output_tokens == output
    assert found.cost_without is not None
    replies = Sent(tokens=0, unchanged=0, output=output)
    assert found.cost_without.plain == pytest.approx(bill([*plain, replies], card).cost, abs=1e-6)
    for summary, run in zip(summarize([found]), found.runs, strict=True):
        sent = sum(run.sent[:finished])
        assert (summary.calls, summary.input_tokens_without, summary.input_tokens) == (
            finished,
            without,
            sent,
        )
        assert summary.saved == pytest.approx(1 - sent / without, abs=1e-6)
        assert summary.cost_without == found.cost_without.plain
        assert summary.cost == pytest.approx(cost(run.sent[:finished], [0] * finished), abs=1e-6)
        assert summary.cost_cached == pytest.approx(
            cost(run.sent[:finished], run.reused[:finished]), abs=1e-6
        )
        assert summary.over_window_without == sum(size > run.window for size in found.without[:finished])
        assert summary.steps == sum(step.call < finished for step in run.steps)
        assert (summary.stopped, summary.failed) == ((1, 1) if run.stopped_at is not None else (0, 0))


def test_the_page_the_table_and_the_data_say_the_same(alone: dict[str, Played]) -> None:
    found = played(*POLICIES.values())
    summaries = summarize([found])
    page, text = as_html([found]), as_markdown([found])
    words = f"Over the {found.compared} of {len(found.calls)} requests that every policy finished"
    assert words in page
    assert words in text
    assert f"{found.compared} of {len(found.calls)}" in page
    columns = ["policy", "saved"]
    for name, saved in summary_cells(summaries, columns)[1:]:
        shares = re.findall(r"-?\d+\.\d%", page[page.index("<h2>Sessions</h2>") :])
        assert saved in shares, (name, "the table of sessions has the same share")
        assert saved in text
    for run in found.runs[:2]:
        assert run.stopped_at is not None
        assert f"{run.policy} stopped at call {run.stopped_at + 1}" in page
        assert (run.error or "").startswith(f"call {run.stopped_at + 1}: InsufficientBudget: ")
    data = as_data([found], list(POLICIES.values()))
    assert data["summary"] == [asdict(summary) for summary in summaries]


def test_a_policy_that_finishes_no_call_has_no_figures() -> None:
    talk = [{"role": "system", "content": "rule " * 9_000}, *long_session(2)[1:]]
    found = play(
        Job(
            file="f",
            session=session(talk),
            policies=[POLICIES["small"], POLICIES["large"]],
            prices=built_in(),
        )
    )
    for summary in summarize([found]):
        assert (summary.calls, summary.saved, summary.cost, summary.cost_without) == (0, None, None, None)
    assert [row[1:] for row in summary_cells(summarize([found]), ["policy", "saved", "cost"], "-")[1:]] == [
        ["-", "-"],
        ["-", "-"],
    ]
    assert "stopped at call 1" in as_html([found])


def test_the_command_says_who_stopped_and_what_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(growing_prompt()))
    for name, each in POLICIES.items():
        Path(f"{name}.json").write_text(json.dumps({"max_context_tokens": each.config.max_context_tokens}))
    command = ["replay", "s.json", "--model", "gpt-4o", "--policy", "small.json", "--compare", "large.json"]
    assert run_command(command) == 1
    out = capsys.readouterr().out
    found = played(POLICIES["small"], POLICIES["large"])
    assert f"Over the {found.compared} of {len(found.calls)} requests that every policy finished" in out
    assert f"small: stopped at call {found.compared + 1} of {len(found.calls)}" in out
    rows = [line.split() for line in out.splitlines()]
    (row,) = [row for row in rows if row[:2] == ["without", "compaction"]]
    assert row[2] == f"{sum(found.without[: found.compared]):,}"


def test_sums_over_different_calls_are_not_called_worse_or_better(tmp_path: Path) -> None:
    """A run that got further has more tokens; one that stopped earlier has fewer, and is worse."""
    small = played(POLICIES["small"])
    further = played(POLICIES["large"])
    for name, one in (("a.json", small), ("b.json", further)):
        (tmp_path / name).write_text(json.dumps(as_data([one], [Policy("p", POLICIES["large"].config)])))
    before, after = read_report(tmp_path / "a.json"), read_report(tmp_path / "b.json")
    better = {
        change.what: change.worse for change in changes(before, after, Allowance()) if change.what != "policy"
    }
    assert better["calls"] is False
    assert "input tokens" not in better
    worse = {change.what: change.worse for change in changes(after, before, Allowance())}
    assert worse["calls"] is True
