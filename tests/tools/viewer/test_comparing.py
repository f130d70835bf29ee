"""Before and after a step: every message in its place, with the level that it really has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.data import bundled_sessions
from support.engine import pair, says, user
from support.viewer import WINDOW, ask, manager_on, opened

from compact import CompactConfig, CompactManager
from compact.archive import Archive
from compact.engine.stages.truncate import truncate
from compact.messages import Message, Text, dialects
from compact.tools.cli.demo import arrivals, demo_session
from compact.tools.viewer.comparing import compare, find_cited, places
from compact.tools.viewer.serving import ViewerServer
from compact.tools.viewer.steps import Comparison, StepReader


def comparisons(archive: Archive, session: str) -> list[Comparison]:
    steps = StepReader(archive)
    folder = archive.folder(session)
    return [steps.compare(folder, step, "gpt-4o") for step in archive.steps_in(folder)]


def check(found: Comparison) -> None:
    """What holds for every comparison: both sides whole, in order, and each level true."""
    befores = [pair.before for pair in found.pairs if pair.before is not None]
    afters = [pair.after for pair in found.pairs if pair.after is not None]
    assert befores == list(range(len(found.before)))
    assert sorted(afters) == list(range(len(found.after)))
    for each in found.pairs:
        one = None if each.before is None else found.before[each.before]
        other = None if each.after is None else found.after[each.after]
        if each.level == "kept":
            assert one is not None
            assert other is not None
            assert one.message.parts == other.message.parts
        elif each.level in ("offloaded", "shrunk", "cut"):
            assert one is not None
            assert other is not None
            assert other.tokens < one.tokens or each.level == "offloaded"
            assert "[compact: " in str(other.message.origin)
        elif each.level == "pruned":
            assert other is None


def test_each_step_of_the_demo_is_told_as_it_was(demo_root: Path) -> None:
    archive = opened(demo_root)
    found = comparisons(archive, "demo")
    assert len(found) >= 5
    for one, following in zip(found, [*found[1:], None], strict=True):
        check(one)
        if following is not None:  # what stood after a step is what the next one began with
            standing = [each.message.parts for each in one.after]
            assert standing == [each.message.parts for each in following.before][: len(standing)]
    levels = Counter(pair.level for each in found for pair in each.pairs)
    assert {"kept", "shrunk", "summarized"} <= set(levels)


def test_the_totals_are_those_of_the_events(demo_root: Path) -> None:
    archive = opened(demo_root)
    pruned = [event for event in archive.events("demo") if event.name == "compact.pruned_messages"]
    for found, event in zip(comparisons(archive, "demo"), pruned, strict=True):
        facts: Any = event.properties
        shown = found.to_json()
        assert (shown["tokens_before"], shown["tokens_after"]) == (facts.tokens_before, facts.tokens_after)
        assert sum(level["before"] for level in shown["levels"]) == facts.tokens_before
        assert sum(level["after"] for level in shown["levels"]) == facts.tokens_after


def test_a_host_that_passes_its_full_history_is_told_the_same_way(tmp_path: Path) -> None:
    session = demo_session()
    with manager_on(tmp_path) as manager:
        history: list[Any] = []
        for arrived in arrivals(session):
            history += arrived
            manager.preflight("full", history)
    found = comparisons(opened(tmp_path), "full")
    assert len(found) >= 5
    for one, following in zip(found, [*found[1:], None], strict=True):
        check(one)
        if following is not None:
            standing = [each.message.parts for each in one.after]
            assert standing == [each.message.parts for each in following.before][: len(standing)]


@pytest.mark.parametrize("layout", ["layered", "selective"])
def test_real_sessions_in_every_dialect_are_told(tmp_path: Path, layout: str) -> None:
    policy = {"layout": layout}
    seen = set()
    for n, session in enumerate(bundled_sessions()):
        with manager_on(tmp_path, 9_000, policy=policy) as manager:
            try:
                manager.manual_compact(f"s{n}", session["messages"], system=session.get("system"))
            except Exception:
                continue
        for found in comparisons(opened(tmp_path), f"s{n}"):
            check(found)
            seen.add(found.step.dialect)
    assert seen


def test_offloaded_summarized_and_kept_messages_are_told_apart(tmp_path: Path) -> None:
    huge = "\n".join(f"line {n} of a large output" for n in range(4_000))
    with manager_on(tmp_path, 9_000, offload={"large_result_tokens": 1_000}) as manager:
        talk = [message for n in range(8) for message in (user(f"q{n}"), says(f"a{n}"))]
        manager.preflight("s", [*talk, user("word " * 7_400), *pair("c1", huge), user("Go on.")])
    (found,) = comparisons(opened(tmp_path), "s")
    check(found)
    by_level = {pair.level: found.before[pair.before or 0].message for pair in found.pairs}
    assert by_level["offloaded"].results[0].call_id == "c1"
    assert by_level["summarized"].text.startswith("word word")
    assert by_level["kept"].text == "Go on."


def test_a_message_that_a_pass_cut_is_told(tmp_path: Path) -> None:
    config = CompactConfig(
        model="gpt-4o", max_context_tokens=9_000, archive={"adapter": "fs", "root": str(tmp_path)}
    )
    with CompactManager(config, stages=[truncate]) as manager:
        manager.preflight("s", [user("Look."), says("word " * 9_000), user("Go on.")])
    (found,) = comparisons(opened(tmp_path), "s")
    check(found)
    assert [(pair.before, pair.after, pair.level) for pair in found.pairs] == [
        (0, 0, "kept"),
        (1, 1, "cut"),
        (2, 2, "kept"),
    ]


def test_places_of_a_host_whose_list_was_repaired_are_counted_from_the_end() -> None:
    assert places([0, 3, 4], 5, 5, None) == {n: n for n in range(5)}
    assert places([2, 3], 4, 6, None) == {2: 4, 3: 5}
    previous = {"recipe": [0, {"item": {}}, 3], "replaced": 4}
    assert places([0, 3, 4], 6, 5, previous) == {0: 0, 3: 2, 4: 3, 5: 4}


def read(*items: dict[str, Any]) -> list[Message]:
    known = dialects.get("chat")
    return [known.read(item) for item in items]


def test_a_new_summary_stands_beside_the_first_message_that_it_covers() -> None:
    before = read(user("one"), says("two"), user("three"), says("four"))
    (summary,) = read(says("<COMPACT-SUMMARY v1>\nwords\n</COMPACT-SUMMARY>"))
    found = [(p.before, p.after, p.level) for p in compare(before, [summary, 2, 3], summaries=[(0, 1)])]
    assert found == [(0, 0, "summarized"), (1, None, "summarized"), (2, 1, "kept"), (3, 2, "kept")]
    found = [(p.before, p.after, p.level) for p in compare(before, [2, 3])]
    assert found == [(0, None, "pruned"), (1, None, "pruned"), (2, 0, "kept"), (3, 1, "kept")]


@pytest.mark.parametrize("level", ["ledger", "marker"])
def test_a_message_that_was_added_is_known_by_its_record_whatever_it_says(level: str) -> None:
    """It replaces nobody, though one of its role is gone at its place."""
    before = read(user("one"), says("two"), user("three"), says("four"))
    (added,) = read(says("What the user said: one"))
    found = compare(before, [added, 2, 3], levels=[level, "whole", "whole"])
    assert [(p.before, p.after, p.level) for p in found] == [
        (0, None, "pruned"),
        (1, None, "pruned"),
        (None, 0, "marker"),
        (2, 1, "kept"),
        (3, 2, "kept"),
    ]


def test_a_message_that_was_cut_stands_beside_itself_though_its_neighbour_is_gone() -> None:
    before = read(user("one two three"), user("four five six"), user("seven eight nine"), says("ten"))
    (cut,) = read(user("four [compact: the rest is in /x] six"))
    found = [(p.before, p.after, p.level) for p in compare(before, [cut, 3])]
    assert found == [(0, None, "pruned"), (1, 0, "cut"), (2, None, "pruned"), (3, 1, "kept")]
    found = [(p.before, p.after, p.level) for p in compare(before, [cut, 3], levels=["cut", "whole"])]
    assert found[1] == (1, 0, "cut")
    (rewritten,) = read(user("something else"))
    found = [(p.before, p.after, p.level) for p in compare(before, [rewritten, 3])]
    assert found[0] == (0, 0, "mended")


def test_a_line_names_its_message_by_number_or_by_its_words() -> None:
    before = read(
        user("Please mend the login page, it is slow."),
        *pair("c1", "ok", "read_file", '{"path": "src/login/page.py", "start": 3}'),
        says("I found the slow query in the login page."),
    )
    text = "\n".join(
        [
            "## What happened",
            "- [4] decided to cache :: because it is slow",
            "- read_file(path=src/login/page.py, start=3) -> ok",
            "- I found the slow query in the...",
            "- Please mend the login page, it is slow.",
            "- short",
            "- nobody ever said these words here",
            "- [99] is no message",
            "- said in other words [m2]",
            "- of another step [v1 m2]",
        ]
    )
    assert find_cited(text, before, range(4)) == [None, 3, 1, 3, 0, None, None, None, 1, None]
    assert find_cited(text, before, [0]) == [None, 3, None, None, 0, None, None, None, 1, None]


def test_a_step_that_was_pruned_or_is_not_there_says_so(server: ViewerServer) -> None:
    assert "no step 99" in ask(server, "/api/sessions/demo/steps/99").json()["error"]
    answer = ask(server, "/api/sessions/demo/steps/1/before/9999").json()
    assert "none at 9999" in answer["error"]
    assert ask(server, "/api/sessions/demo/steps/1/beside/1").status == 404


def test_a_comparison_carries_no_words_of_the_session(server: ViewerServer, demo_root: Path) -> None:
    shown = ask(server, "/api/sessions/demo/steps/2").body.decode()
    message = opened(demo_root).restore("demo", 2).messages[0]["content"]
    assert message[:30] not in shown
    events = ask(server, "/api/sessions/demo/events").body.decode()
    assert "COMPACT-SUMMARY" not in events
    assert str(WINDOW) in events


def test_a_line_of_the_ledger_leads_to_the_message_of_its_step() -> None:
    text = "- [v2 m1] Be brief.\n- [v2 m2, model] Be kind.\n- [v1 m1] Be loud.\n- [v2 m9] Be there."
    before = [Message("user", (Text(words),)) for words in ("Be brief.", "Be kind.")]
    assert find_cited(text, before, [], 2) == [0, 1, None, None]
