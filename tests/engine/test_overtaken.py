"""A worker that another one overtook notices it before it works, not after."""

from __future__ import annotations

from typing import Any

import pytest
from support.engine import Clock, assert_good, events, manager, summary_of, turns, user

from compact import CompactConfig, CompactManager
from compact.errors import ArchiveError
from compact.testing import ScriptedSummarizer

GOOD = "## Goal\nGo on with the questions.\n## Next steps\nAnswer the next question."


def workers(count: int) -> tuple[list[CompactManager], ScriptedSummarizer]:
    """Managers on one archive, and the summarizer that they share."""
    summarizer = ScriptedSummarizer(GOOD)
    archive = manager().archive
    # Here every pass is made in its call; those in the background: tests/runtime/test_background.py.
    config = CompactConfig(model="gpt-4o", max_context_tokens=8000, policy={"background_pct": None})
    made = [
        CompactManager(config, archive=archive, summarizer=summarizer, clock=Clock()) for _ in range(count)
    ]
    return made, summarizer


def test_a_step_is_summarized_once_however_many_workers_take_turns() -> None:
    made, summarizer = workers(3)
    alone, expected = workers(1)
    history: list[dict[str, Any]] = []
    for number, message in enumerate(turns(80)):
        history.append(message)
        out = made[number % 3].preflight("s", list(history))
        assert out == alone[0].preflight("s", list(history))
    assert len(made[0].archive.steps("s")) == len(alone[0].archive.steps("s")) > 1
    assert len(summarizer.requests) == len(expected.requests)


def test_a_manual_compaction_is_made_though_another_worker_compacted_before() -> None:
    (one, two), _ = workers(2)
    history = turns(40)
    one.preflight("s", history)
    two.preflight("s", history)
    history += turns(4, words=5)
    one.manual_compact("s", history)
    history += [*turns(20, words=5), user("Fold all of it.")]
    out = two.manual_compact("s", history)
    assert summary_of(out).startswith("<COMPACT-SUMMARY v3>")
    assert one.archive.steps("s") == [1, 2, 3]
    assert_good(two, history, out)
    assert_good(one, history, one.preflight("s", history))


def test_an_archive_that_does_not_answer_whether_it_was_overtaken_takes_no_step_either() -> None:
    (made,), _ = workers(1)
    archive = made.archive
    history = turns(40)
    made.preflight("s", history)
    latest = archive.latest

    def refuse(session_id: str) -> Any:
        raise ArchiveError("it does not answer")

    archive.latest = refuse  # type: ignore[method-assign]
    manual = [*history, *turns(3)]
    assert made.manual_compact("s", manual)[-6:] == turns(3), "it fits: it stays as it is"
    with pytest.raises(ArchiveError, match="does not answer"):
        made.preflight("s", [*history, *turns(40)])
    archive.latest = latest  # type: ignore[method-assign]
    assert archive.steps("s") == [1]
    outcomes = [e["properties"]["outcome"] for e in events(made, name="finished")]
    assert outcomes == ["compacted", "failed", "failed"]
    out = made.preflight("s", [*history, *turns(40)])
    assert_good(made, [*history, *turns(40)], out)
    assert archive.steps("s") == [1, 2]
