"""A citation leads to the message that says it, in the archived transcript and in the page for people."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from support.engine import manager, pair, says, user

Item = dict[str, Any]


def _turns() -> list[Item]:
    items: list[Item] = []
    for turn in range(10):
        items.append(user(f"Go on with part {turn}, please."))
        if turn == 4:
            items.append({**says("This stays."), "meta": {"protected": True}})
        for k in range(4):
            n = turn * 4 + k
            items += pair(
                f"c{n}", f"the value of fact_{n} is {n * 7919}\n" * 3, arguments=f'{{"part": "fact_{n}"}}'
            )
    return [*items, says("Done."), user("And now?")]


@pytest.mark.parametrize(
    "policy", [{}, {"layout": "selective", "retention_window": 2}], ids=["layered", "selective"]
)
def test_every_cited_number_is_the_message_that_names_it(policy: dict[str, Any]) -> None:
    made = manager(32_000, policy=policy)
    out = made.manual_compact("s", _turns())
    transcript = made.archive.restore("s", 1).messages
    page = made.archive.read_text("s", "/conversation_history/step-001.md")
    cited = re.findall(r"(fact_\d+)\b[^\n]*\[m(\d+)\]", "\n".join(str(m["content"]) for m in out))
    assert len(cited) > 10
    for fact, number in cited:
        assert f"{fact} " in str(transcript[int(number) - 1]).replace(chr(34), " "), (fact, number)
        part = re.search(rf"## {number}\. (.*?)(?=## {int(number) + 1}\. |\Z)", page, re.DOTALL)
        assert part is not None
        assert fact in part.group(1)


def test_the_record_of_a_summary_says_where_its_messages_stand() -> None:
    made = manager(32_000, policy={"layout": "selective", "retention_window": 2})
    made.manual_compact("s", _turns())
    positions = [
        entry["positions"] for entry in made.archive.summary("s", made.archive.step("s", 1))["summaries"]
    ]
    assert len(positions) > 3
    for (_, end), (start, _) in itertools.pairwise(positions):
        assert end < start, "runs do not overlap"
