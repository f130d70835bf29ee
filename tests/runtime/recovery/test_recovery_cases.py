"""The reference cases for truncation, recovery, timeouts and detection, run from their file; guard and hygiene have a file of their own."""

from __future__ import annotations

import ast
import asyncio
import copy
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.data import reference_cases
from support.engine import events, manager, pair, pass_rules, says, user
from support.waiting import WAIT_S
from support.windows import Item, Refused, tool_session

from compact import CompactConfig, CompactManager
from compact.checks import violations
from compact.engine.context import Context, Desk, Row
from compact.engine.effects import drive
from compact.engine.stages.offload import is_large
from compact.engine.stages.truncate import truncate
from compact.hygiene import clean
from compact.messages import Message, Text, dialects
from compact.messages.excerpts import tail_matters
from compact.runtime.conductor import Snapshot
from compact.runtime.overflow import recognise
from compact.runtime.summarizing import Breaker
from compact.summaries.chunks import chunks
from compact.testing import FailingArchive, ScriptedSummarizer

IN_HYGIENE = (
    "guard_16k_32k",
    "guard_resolve",
    "guard_new_4k_8k",
    "guard_message",
    "pairing_repair",
    "sanitize_calls",
    "call_ids",
    "limit_turns",
    "history_limit_lookup",
)
"""Areas that tests/messages/hygiene/test_reference_cases.py runs."""

AREAS_NOT_OURS = {
    "truncate_budget": "one result is bounded by offload.large_result_tokens and by the whole budget, not by characters",
    "timeout_aggregate": "one pass has one time, policy.timeout_s, which is never extended",
    "reason_codes": "outcomes are event properties and error classes, not sentences to be classified",
    "plan_oversized": "nothing is left out of a summary's input for its size: it is cut to head and tail",
    "plan_prune_share": "what leaves the context is summarized and archived, never dropped to reach a share",
    "summary_retry": "a failed summary is not asked for again: the extractive one takes its place at once",
}
NOT_OURS = {
    "O096": "there is no function for the length of a message that is no result",
    "O098": "every block of a result keeps its own head, and its tail only where that says how it went",
    "O112": "there is no estimate of what cutting would save: it is cut, and counted",
    "O114": "no message is cut below 40 tokens; what still does not fit is dropped with its pair, archived",
    "O116": "the bulkiest result is cut first, whatever its age",
    "O122": "there is one ladder, reversible stages first, not a choice of routes",
    "O124": "there is one ladder, reversible stages first, not a choice of routes",
    "O126": "there is one ladder, reversible stages first, not a choice of routes",
    "O168": "a summarizer that is a coroutine is itself cancelled: tests/runtime/test_sharing.py",
    "O174": "the pause of the breaker is one setting, recovery.breaker_pause_s, and does not double",
    "O176": "the breaker is the summarizer's, which all sessions share",
    "O186": "as few pieces as fit the summarizer's window, not a given number of parts",
    "O188": "as few pieces as fit the summarizer's window, not a given number of parts",
    "O190": "as few pieces as fit the summarizer's window, not a given number of parts",
    "O212": "an empty list has nothing to summarize and is returned as it is; there is no text in its place",
    "O218": "a list is the host's: nothing is pending that could be cleared",
    "O226": "a list is the host's: there is no write that a hook could block",
}
RUN = (
    "truncate",
    "truncate_recovery",
    "precheck_route",
    "overflow_recovery",
    "timeout_flag",
    "timeout_snapshot",
    "timeout_wait",
    "timeout_safety",
    "circuit_breaker",
    "plan_chunks",
    "summary_fallback",
    "append_guard",
    "pruning",
    "overflow_detection",
)


def cases(area: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{case['id']} {case['name'][:60]}")
        for case in reference_cases(area)
        if case["id"] not in NOT_OURS
    ]


def test_every_case_of_the_file_is_run_or_named_with_a_reason() -> None:
    areas = {case["area"] for case in reference_cases()}
    assert areas == {*IN_HYGIENE, *AREAS_NOT_OURS, *RUN}
    assert set(NOT_OURS) <= {case["id"] for area in RUN for case in reference_cases(area)}
    assert sum(len(cases(area)) for area in RUN) > 40


# --- cutting, in characters as the file counts


def text_of(wanted: str) -> str:
    """A text as the file describes it: literals, literal * count, counted lines."""
    found = ""
    for piece in re.split(r"\s*\+\s*", wanted):
        if lines := re.match(r"(\d+) lines(?: '(.*)')?$", piece):
            found += "\n".join(f"line {n}: {'x' * 40}" for n in range(int(lines[1]))) + "\n"
        elif times := re.match(r"(.+)\*(\d+)$", piece):
            found += _literal(times[1]) * int(times[2])
        else:
            found += _literal(piece)
    return found


def _literal(piece: str) -> str:
    return str(ast.literal_eval(piece)) if piece[:1] in "'\"" else piece


def desk(limit: int = 20_000) -> Desk:
    def count(message: Message) -> int:
        results = [part for result in message.results for part in result.content]
        return sum(len(part.text) for part in (*message.parts, *results) if isinstance(part, Text))

    return Desk(
        dialect=dialects.get("chat"),
        count=count,
        count_text=len,
        gauge_text=len,
        scale=int,
        redact=str,
        redact_output=str,
        rewrite=lambda message: message,
        large_result_tokens=limit,
        preview_lines=10,
        preview_tokens=400,
        excerpt_share=0.25,
        write_tools=frozenset(),
    )


def cut(text: str, limit: int) -> str:
    """A tool's result cut to so many characters by the stage that cuts. Without its call, it cannot become a pointer."""
    parts = desk()
    message = parts.dialect.read(pair("c", text)[1])
    rows = [Row(message, parts.count(message), 0)]
    context = Context(
        rows=rows, rules=pass_rules(budget=limit), desk=parts, step=1, history_path="the archive"
    )
    (row,) = drive(truncate(context), lambda effect: pytest.fail(f"it asked for {effect}")).rows
    (result,) = row.message.results
    return result.text


@pytest.mark.parametrize("case", cases("truncate"))
def test_truncation(case: Item) -> None:
    given, expected = case["input"], case["expected"]
    if "tail" in given:
        assert tail_matters("output\n" * 900 + given["tail"]) is expected["head_and_tail"]
        return
    if "messages" in given:
        check_oversized(given, expected)
        return
    text = text_of(given["text"])
    after = cut(text, given["max"])
    if expected.get("same"):
        assert after == text
        return
    assert len(after) <= min(given["max"], len(text))
    wanted = expected.get("contains", [])
    for part in [wanted] if isinstance(wanted, str) else wanted:
        assert {"truncated": "omitted"}.get(part, part) in after, "ours says omitted, and where the rest lies"
    if expected.get("kept_ends_at_line_boundary"):
        head = after.split("\n[")[0]
        assert text.startswith(head + "\n")


def check_oversized(given: Item, expected: Item) -> None:
    chars = 500_000 if any("500000" in entry for entry in given["messages"]) else 40
    made = manager(given["window"])
    items = [user("go"), *pair("c", "row of the report\n" * (chars // 18))]
    after = made.preflight("s", items)
    changed = [n for n, item in enumerate(after) if item is not items[n]]
    assert len(changed) == expected["truncated"]
    assert all(after[n] is items[n] for n in expected.get("identity_kept", []))


@pytest.mark.parametrize("case", cases("truncate_recovery"))
def test_what_is_oversized(case: Item) -> None:
    given, expected = case["input"], case["expected"]
    if isinstance(expected, bool):
        text = given.get("text") or "row of words\n" * (given["chars"] // 13)
        assert is_large(text, desk(given.get("max", 16_000))) is expected
        return
    # Together they are more than there is room for: all are reduced, none is emptied, and what is left is legal.
    made = manager(6000)
    results = given["results"]
    items = [user("go")]
    for n, chars in enumerate(results):
        items += pair(f"c{n}", f"row {n} of words\n" * (chars // 15))
    after = made.preflight("s", items)
    assert after is not items
    assert made.estimate(after).total <= made.config.budget(6000)
    assert violations(after) == []
    assert all(item["content"] for item in after if item["role"] == "tool")


@pytest.mark.parametrize("case", cases("precheck_route"))
def test_a_session_that_fits_is_left_alone(case: Item) -> None:
    given = case["input"]
    made = manager(given["window"], policy={"hard_cap_buffer": 0, "reserve_output_tokens": given["reserve"]})
    items = [user("word " * (given["estimated_prompt"] - 20)), says("ok")]
    assert case["expected"]["route"] == "fits"
    assert made.preflight("s", items) is items


# --- recovery


def protected_session() -> list[Item]:
    """Most of it must stay: a compaction to the wanted size fails, cutting the results helps."""
    return [user("These rules stay. " * 1100, meta={"protected": True}), *tool_session(7, 150)]


@pytest.mark.parametrize("case", cases("overflow_recovery"))
def test_recovery(case: Item) -> None:
    given, expected = case["input"], case["expected"]
    made = manager(32_000)
    items = protected_session() if "fail" in given.get("compactions", ()) else tool_session(60)
    requests: list[list[Item]] = []

    def model(messages: Any) -> Any:
        requests.append(list(messages))
        script = given["attempts"]
        said = script[min(len(requests), len(script)) - 1]
        if said.startswith(("overflow", "handled")):
            raise Refused("Input is too long for requested model.")
        if said.startswith("assistant_error: "):
            return {"role": "assistant", "stop_reason": "error", "error_message": said.split(": ")[1]}
        if said.startswith("raise "):
            stale = ValueError("prompt is too long: 9 tokens > 8 maximum")
            lost = ConnectionError(said.removeprefix("raise ").split(" (")[0])
            lost.__context__ = stale
            raise lost
        if said.startswith("timeout"):
            raise TimeoutError("the model did not answer in time")
        return {"role": "assistant", "content": "ok"}

    if "raises" in expected or expected.get("is_error_payload"):
        with pytest.raises((ConnectionError, TimeoutError), match=expected.get("raises", "in time")):
            made.call("s", items, model)
        assert len(requests) == 1
    else:
        assert made.call("s", items, model)["content"] == "ok"
    made.flush()
    actions = [e.properties.action for e in made.archive.events("s") if e.name == "compact.recovery"]  # type: ignore[attr-defined]
    assert actions.count("compact") == expected.get("compact_calls", actions.count("compact"))
    assert actions.count("truncate") == expected.get("truncate_calls", actions.count("truncate"))
    assert len(requests) == expected.get("attempts", len(requests))
    if "user_message_persisted" in expected:
        kept = made.archive.restore("s", 1).messages
        assert sum(item == items[-1] for item in kept) == expected["user_message_persisted"]
    if "second_prompt" in expected:
        assert requests[1][-1] == items[-1], "the conversation goes on where it was"
        assert sum(item == items[-1] for item in requests[1]) == 1


@pytest.mark.parametrize("case", cases("overflow_detection"))
def test_detection(case: Item) -> None:
    assert (recognise(case["input"]["error"]) is not None) is case["expected"]
    assert (recognise(RuntimeError(case["input"]["error"])) is not None) is case["expected"]


# --- time


class Slow:
    """A summarizer that answers when it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def __call__(self, request: Any) -> str:
        self.let_go.wait(30)
        return "late"


def compacted_in(timeout_s: float, slow: bool) -> tuple[CompactManager, list[Item], Any]:
    summarizer = Slow()
    if not slow:
        summarizer.let_go.set()
    policy = {"timeout_s": timeout_s, "keep_recent_turns": 1, "keep_tool_io_pairs": 1}
    made = manager(32_000, summarizer=summarizer, policy=policy)
    items = tool_session(30)
    after = made.manual_compact("s", items)
    summarizer.let_go.set()
    return made, items, after


@pytest.mark.parametrize("case", cases("timeout_flag"))
def test_a_snapshot_is_given_only_when_a_compaction_was_under_way(case: Item) -> None:
    given = case["input"]
    under_way = given["pending_or_retrying"] or given["in_flight"]
    slow = given["timeout"] and under_way
    made, _, _ = compacted_in(0.2 if slow else 30, slow)
    assert isinstance(made.last_outcome("s"), Snapshot) is case["expected"]


@pytest.mark.parametrize("case", cases("timeout_snapshot"))
def test_which_messages_a_caller_gets(case: Item) -> None:
    made, items, after = compacted_in(0.2 if case["input"]["timed_out"] else 30, case["input"]["timed_out"])
    outcome = made.last_outcome("s")
    if case["expected"]["source"] == "pre-compaction":
        assert list(after) == items
        assert isinstance(outcome, Snapshot)
        assert outcome.snapshot_id, "a snapshot has its own id"
    else:
        assert len(after) < len(items)
        assert not isinstance(outcome, Snapshot)


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "loop"])
@pytest.mark.parametrize("case", cases("timeout_wait"))
def test_waiting(case: Item, is_async: bool) -> None:
    """Two callers of one session: the second waits for the first one's pass, and both go on as the case says."""
    slow, items = Slow(), tool_session(30)
    fails = str(case["input"]["wait"]).startswith("raises")

    def failing(context: Context) -> Context:
        raise RuntimeError("compaction failed")

    timeout_s = WAIT_S if fails else case["input"]["timeout_ms"] / 1000
    policy = {"timeout_s": timeout_s, "keep_recent_turns": 1}
    made = manager(32_000, summarizer=slow, policy=policy, stages=[failing] if fails else None)

    made.preflight("s", items)  # counts what the passes need, so that their time goes into waiting

    def compact() -> Any:
        if is_async:
            return asyncio.run(made.amanual_compact("s", items))
        return made.manual_compact("s", items)

    with ThreadPoolExecutor(2) as pool:
        callers = [pool.submit(compact) for _ in range(2)]
        if fails:
            for caller in callers:
                with pytest.raises(RuntimeError, match="compaction failed"):
                    caller.result()
        else:
            assert [list(caller.result()) for caller in callers] == [items, items], "nobody waits for ever"
        slow.let_go.set()
    told = [event["properties"]["message"] for event in events(made, name="error")]
    assert len(told) >= 2
    assert all(("compaction failed" if fails else "did not end within 0.05 s") in text for text in told)
    assert made.archive.steps("s") == []


@pytest.mark.parametrize("case", cases("timeout_safety"))
def test_a_pass_within_its_time(case: Item) -> None:
    if case["input"].get("abort_before"):
        made = manager(32_000)

        async def aborted() -> None:
            task = asyncio.create_task(made.amanual_compact("s", tool_session(30)))
            task.cancel()
            await task

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(aborted())
        return
    made, items, after = compacted_in(case["input"]["limit_ms"] / 1000, slow=False)
    assert len(after) < len(items)


@pytest.mark.parametrize("case", cases("circuit_breaker"))
def test_breaker(case: Item) -> None:
    given, now = case["input"], datetime(2026, 1, 1, tzinfo=UTC)
    clock = [now]
    breaker = Breaker(3, pause_s=4, clock=lambda: clock[0])
    for _ in range(given["failures"]):
        breaker.fail()
    clock[0] = now + timedelta(milliseconds=given.get("after_ms", 0))
    assert (not breaker.allows()) is case["expected"]


# --- summaries, lists


@pytest.mark.parametrize("case", cases("plan_chunks"))
def test_pieces_for_the_summarizer(case: Item) -> None:
    items = []
    for entry in case["input"]["messages"].split():
        kind, number, chars = re.match(r"(T!|[uTr])(\d+)\((\d+)\)", entry).groups()  # type: ignore[union-attr]
        text = "word " * (int(chars) // 5)
        if kind == "u":
            items.append(user(text))
        elif kind == "r":
            items.append(pair(f"c{int(number) - 1}", text)[1])
        else:
            aborted = {"stop_reason": "aborted"} if kind == "T!" else {}
            items.append({**pair(f"c{number}", "")[0], "content": text, **aborted})
    chat = dialects.get("chat")
    pieces = chunks(
        [chat.read(item) for item in items],
        "chat",
        case["input"]["max_chunk_tokens"],
        lambda text: len(text) // 4,
    )
    found = [[int(n) for n in re.findall(r'<message n="(\d+)"', piece)] for piece in pieces]
    # A pair that is larger than a piece is cut to head and tail; its first message shows where it went.
    assert [numbers[0] for numbers in found] == [numbers[0] for numbers in case["expected"]]


@pytest.mark.parametrize("case", cases("summary_fallback"))
def test_when_everything_fails_history_is_unchanged(case: Item) -> None:
    recorder = manager().services.recorder
    made = CompactManager(
        CompactConfig(model="gpt-4o", max_context_tokens=32_000),
        summarizer=ScriptedSummarizer(RuntimeError("down")),
        archive=FailingArchive(recorder, lambda operation: operation == "begin"),
    )
    items = tool_session(30)
    assert made.manual_compact("s", items) is items


@pytest.mark.parametrize("case", cases("append_guard"))
def test_what_a_list_becomes_as_it_grows(case: Item) -> None:
    items: list[Item] = []
    for n, entry in enumerate(case["input"]["sequence"]):
        kind, _, call_id = entry.partition(":")
        if kind == "T(no args)":
            call = {"id": call_id or f"x{n}", "type": "function", "function": {"name": "read"}}
            items.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "T":
            items.append(pair(call_id, "")[0])
        elif kind == "r":
            items.append(pair(call_id, "result")[1])
        else:
            items.append(says("something went wrong"))
    if "T(no args):c2" in case["input"]["sequence"]:
        items.append(says("and on"))  # the call before it is in flight until the model has spoken again
    after = [word(item) for item in clean(items)]
    assert after[: len(case["expected"]["persisted"])] == case["expected"]["persisted"]


def word(item: Item) -> str:
    if item["role"] == "tool":
        return f"r{'*' if 'missing tool result' in item['content'] else ''}:{item['tool_call_id']}"
    if item.get("tool_calls"):
        return "T:" + ",".join(call["id"] for call in item["tool_calls"])
    return "assistant"


@pytest.mark.parametrize("case", cases("pruning"))
def test_the_reversible_stages(case: Item) -> None:
    """Tool results become pointers; words stay, pictures stay, and the host's own list is not touched."""
    policy = {"target_pct": 0.8, "hard_cap_buffer": 0}
    made = manager(8000, policy=policy, offload={"large_result_tokens": 1500})
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    items = [user("Look at these."), *pair("big", "row of words\n" * 2500)]
    items += pair("seen", "")
    items[-1]["content"] = [{"type": "text", "text": "the screen"}, picture]
    items += [says("I see."), user("Go on.")]
    before = copy.deepcopy(items)
    after = made.preflight("s", items)
    assert items == before
    assert after is not items
    for one, other in zip(items, after, strict=True):
        if one["role"] != "tool":
            assert one is other
    assert json.dumps(picture) in json.dumps(after)
