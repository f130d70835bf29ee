"""Summaries of real sessions, byte for byte. After a wanted change: `python tests/summaries/test_golden_summaries.py`."""

from __future__ import annotations

import pytest
from support.summaries import GOLDEN, session, summary

CASES = [
    (strategy, name)
    for strategy in ("task_state", "decision_log", "code_delta", "brief")
    for name in ("entire-ce", "openhands", "tau-gem2")
]


def _text(strategy: str, name: str) -> str:
    return summary(session(name), strategy, 1500) + "\n"


@pytest.mark.parametrize(("strategy", "name"), CASES)
def test_the_summary_is_the_golden_one(strategy: str, name: str) -> None:
    assert _text(strategy, name) == (GOLDEN / f"{strategy}-{name}.md").read_text(encoding="utf-8")


if __name__ == "__main__":
    for case in CASES:
        (GOLDEN / f"{'-'.join(case)}.md").write_text(_text(*case), encoding="utf-8")
