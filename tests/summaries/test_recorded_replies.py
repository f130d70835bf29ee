"""Recorded replies of a model become the same message every time. After a wanted change: run this file."""

from __future__ import annotations

import pytest
from support.engine import events
from support.llm import Answer, good_summaries, messages_of, serving, source_of
from support.summaries import GOLDEN

from compact import CompactConfig, CompactManager

STRATEGIES = ("task_state", "decision_log", "code_delta", "brief")


def _message(strategy: str) -> str:
    """The summary message that a recorded reply becomes, through a real server and the whole line."""
    entry = next(
        each
        for each in good_summaries()
        # A short part leaves too little room for the reply, and then it is not the reply that stands.
        if each["strategy"] == strategy and len(source_of(each).text) > 12_000
    )
    items = [message.origin for message in messages_of(entry)]
    with serving(Answer(f"<summary>{entry['text']}</summary>")) as endpoint:
        config = CompactConfig(
            model="gpt-4o",
            policy={"strategy": strategy, "keep_recent_turns": 1, "keep_tool_io_pairs": 1},
            summary={"model": "small-model", "base_url": endpoint.base_url},
            archive={"adapter": "memory"},
        )
        with CompactManager(config) as made:
            after = made.manual_compact("s", [*items, {"role": "user", "content": "Go on."}])
            assert events(made, name="error") == []
    (text,) = [item["content"] for item in after if "<COMPACT-SUMMARY" in str(item["content"])]
    assert entry["text"] in text
    return str(text) + "\n"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_recorded_reply_becomes_the_golden_message(strategy: str) -> None:
    assert _message(strategy) == (GOLDEN / f"reply-{strategy}.md").read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in STRATEGIES:
        (GOLDEN / f"reply-{name}.md").write_text(_message(name), encoding="utf-8")
