"""What is too long to count is moved by its length, and what is too deep to compare is refused where it enters."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager, MessageError, checks, hygiene
from compact.tokens.counter import SplintrCounter, TiktokenCounter

LIMIT = 200
HUGE = "x" * 3_000_000


@pytest.fixture
def manager() -> CompactManager:
    return CompactManager(
        CompactConfig(
            model="gpt-4o",
            archive={"adapter": "memory"},
            offload={"large_result_tokens": LIMIT, "preview_tokens": 50},
        )
    )


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of every text that a tokenizer counts."""
    seen: list[int] = []
    for kind in (SplintrCounter, TiktokenCounter):
        count = kind.count

        def noting(self: Any, text: str, count: Any = count) -> int:
            seen.append(len(text))
            return int(count(self, text))

        monkeypatch.setattr(kind, "count", noting)
    return seen


def pair(result: Any) -> list[Any]:
    function = {"name": "read", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    return [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]


@pytest.mark.parametrize("result", [HUGE, [{"type": "text", "text": HUGE}]], ids=["text", "blocks"])
def test_a_huge_result_is_moved_without_counting_it(
    manager: CompactManager, longest: list[int], result: Any
) -> None:
    sent = manager.preflight("s", pair(result))
    assert len(str(sent)) < 5_000
    assert "tokens" in str(sent[-1]["content"])
    assert max(longest) < 1_000_000
    read = manager.recall_tools("s")["read_file"]("/tool_outputs/" + stored_name(sent))
    assert "x" * 10_000 in read
    assert "more characters" in read


def stored_name(sent: list[Any]) -> str:
    content = sent[-1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return str(text).split("/tool_outputs/")[1].split(":")[0]


def test_a_huge_result_that_is_handed_in_alone_is_moved_without_counting_it(
    manager: CompactManager, longest: list[int]
) -> None:
    shown = manager.process_tool_result(HUGE, "read", "c1", "s")
    assert len(shown) < 2_000
    assert max(longest) < 1_000_000


def nested(levels: int) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = [value]
    return value


def endless() -> Any:
    value: dict[str, Any] = {}
    value["itself"] = [value, value]
    return value


@pytest.mark.parametrize("value", [nested(250), nested(20_000), endless()], ids=["deep", "deeper", "endless"])
@pytest.mark.parametrize("look", ["preflight", "violations", "clean"])
def test_data_that_cannot_be_written_is_refused_by_its_index(
    manager: CompactManager, look: str, value: Any
) -> None:
    use = {"type": "tool_use", "id": "t", "name": "x", "input": {"a": value}}
    messages: list[Any] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
    ]
    looks: dict[str, Any] = {
        "preflight": lambda: manager.preflight("s", messages),
        "violations": lambda: checks.violations(messages),
        "clean": lambda: hygiene.clean(messages),
    }
    for _ in range(2):
        with pytest.raises(MessageError, match=r"messages\[1\].*200 levels\), or contains itself"):
            looks[look]()


def test_nesting_that_is_merely_unusual_passes(manager: CompactManager) -> None:
    use = {"type": "tool_use", "id": "t", "name": "x", "input": {"a": nested(150)}}
    messages: list[Any] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
    ]
    assert manager.preflight("s", messages) is messages
    assert manager.preflight("s", [*messages]) == messages
