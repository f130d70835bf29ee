"""Plain text could be several dialects. The tools that are sent with it decide."""

from __future__ import annotations

import pytest
from support.engine import manager, says, user

from compact import MessageError
from compact.tools.standins import anthropic_problems

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]


def test_plain_text_with_tools_of_anthropic_is_legal_there() -> None:
    made = manager(8_000)
    history = []
    for n in range(60):
        history.append(user(f"Question {n}: " + "word " * 100))
        history = list(made.preflight("s", history, tools=TOOLS))
        body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": history, "tools": TOOLS}
        assert anthropic_problems(body) == []
        history.append(says(f"Answer {n}: " + "word " * 100))
    assert len(made.archive.steps("s")) > 1


@pytest.mark.parametrize(
    "empty", [[{"role": "user", "content": ""}], [{"role": "user", "content": None}] * 2]
)
def test_a_list_that_says_nothing_is_an_error_and_never_an_empty_request(
    empty: list[dict[str, object]],
) -> None:
    with pytest.raises(MessageError, match="nothing to send"):
        manager().preflight("s", empty)
