"""Models that bind thinking to everything before it: nothing that is sent is refused, and between passes nothing is edited."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from support.archive import archive_on

from bench.thinking import KEY, SYSTEM, Job, play
from compact import CompactConfig, CompactManager
from compact.archive.stores.memory import MemoryStore
from compact.checks import violations
from compact.messages.dialects import get
from compact.messages.thinking import bound_form
from compact.tools.standins import Rules, anthropic_problems, sign_block

Item = dict[str, Any]

MODEL = "claude-opus-5-5"
TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]


def ask(text: str) -> Item:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def answer(call_id: str, text: str) -> Item:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]}


def body_of(messages: Sequence[Any], model: str = MODEL, **more: Any) -> Item:
    return {
        "model": model,
        "max_tokens": 9,
        "system": SYSTEM,
        "tools": TOOLS,
        "messages": list(messages),
        **more,
    }


def thinks(body: Item, *blocks: Item, thought: str = "hm " * 40) -> Item:
    """A reply to a request, as the model writes it."""
    made = {"type": "thinking", "thinking": thought, "signature": sign_block(thought, body, KEY)}
    return {"role": "assistant", "content": [made, *blocks]}


def problems(body: Item) -> list[str]:
    return anthropic_problems(body, Rules(signing_key=KEY))


def use(call_id: str) -> Item:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {"at": call_id}}


def blocks_in(messages: Sequence[Item]) -> list[int]:
    """The indices of the messages with thinking."""
    return [
        n
        for n, item in enumerate(messages)
        if isinstance(item["content"], list) and any(block["type"] == "thinking" for block in item["content"])
    ]


def differs_at(one: Sequence[Item], other: Sequence[Item]) -> int:
    """The first message that is another one, thinking aside."""
    dialect = get("anthropic")
    forms = [[bound_form(item, dialect) for item in items] for items in (one, other)]
    return next(n for n, both in enumerate(zip(*forms, strict=False)) if both[0] != both[1])


def agent(
    made: CompactManager, keeps: bool, calls: int, own: list[Item] | None = None, words: int = 300
) -> tuple[list[Item], list[Item]]:
    """Run an agent with one long tool loop. Returns the host's list and every request."""
    own = [ask("Find it.")] if own is None else own
    sent: list[Item] = []
    for n in range(len(own), len(own) + calls):
        body = body_of(made.preflight("s", own, tools=TOOLS, system=SYSTEM, model=MODEL))
        sent.append(body)
        own = list(body["messages"]) if keeps else own
        own += [thinks(body, use(f"c{n}")), answer(f"c{n}", f"line {n} " * words)]
    return own, sent


def managed(**settings: Any) -> CompactManager:
    settings = {"archive": {"adapter": "memory"}, "max_context_tokens": 20_000, **settings}
    return CompactManager(CompactConfig(model=MODEL, **settings))


# --- whole sessions


@pytest.mark.parametrize(
    ("host", "layout", "model"),
    [("keeps", "layered", "claude-fable-5-2"), ("full", "layered", MODEL), ("full", "selective", MODEL)],
)
def test_no_request_of_a_long_session_is_refused(host: str, layout: str, model: str) -> None:
    run = play(Job("entire", model, host, layout, 20_000, seed=3), calls=50)
    assert (run.refused, run.unseen, run.excused) == ([], [], "")
    assert run.passes > 1
    assert run.blocks > 5


def test_an_older_models_open_loop_keeps_its_thinking() -> None:
    run = play(Job("entire", "claude-sonnet-4-5", "full", "layered", 20_000, seed=3), calls=50)
    assert (run.refused, run.passes > 1) == ([], True)
    stripped = play(
        Job("entire", "claude-sonnet-4-5", "full", "layered", 20_000, seed=3), 50, thinking="strip"
    )
    assert (stripped.refused, stripped.passes > 1) == ([], True)


def test_thinking_that_is_kept_behind_an_edit_is_refused_and_found() -> None:
    run = play(Job("entire", MODEL, "full", "layered", 20_000, seed=3), calls=50, thinking="keep")
    assert run.refused
    # Only the first: what follows a refused request is compared with that request.
    assert run.refused[0].split(": ")[0] not in [line.split(": ")[0] for line in run.unseen]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
def test_no_request_of_many_drawn_sessions_is_refused(seed: int) -> None:
    from bench.thinking import draw_jobs

    for job in draw_jobs(seed, 10):
        run = play(job)
        assert (run.refused, run.unseen) == ([], [])


# --- one session


@pytest.mark.parametrize("keeps", [True, False])
def test_between_passes_nothing_that_was_sent_is_edited(keeps: bool) -> None:
    made = managed()
    _, sent = agent(made, keeps, 40)
    edits = 0
    for before, after in pairwise(sent):
        grown = after["messages"][: len(before["messages"])] == before["messages"]
        edits += not grown
        assert problems(after) == []
        assert violations(after, in_flight=False, model=MODEL, previous=before) == []
    assert edits == len(made.archive.steps("s")) > 1
    made.close()


def test_both_kinds_of_host_send_the_same() -> None:
    kept, full = managed(), managed()
    assert agent(kept, True, 30)[1] == agent(full, False, 30)[1]
    kept.close()
    full.close()


def test_words_and_calls_stay_and_blocks_made_afterwards_too() -> None:
    made = managed()
    own, sent = agent(made, False, 30)
    passes = [
        n
        for n in range(1, len(sent))
        if sent[n]["messages"][: len(sent[n - 1]["messages"])] != sent[n - 1]["messages"]
    ]
    at_pass = sent[passes[0]]["messages"]
    first_change = differs_at(at_pass, sent[passes[0] - 1]["messages"])
    assert blocks_in(at_pass) == list(range(1, first_change, 2))
    kept = [block for item in at_pass if item["role"] == "assistant" for block in item["content"][-1:]]
    assert [block["id"] for block in kept if block["type"] == "tool_use"][-1] == f"c{passes[0]}"
    assert blocks_in(sent[passes[0] + 1]["messages"]) == [*blocks_in(at_pass), len(at_pass)]
    assert made.archive.restore("s", step=1).messages[1] == own[1]  # with its thinking
    made.close()


def test_a_host_that_sends_its_full_history_gets_the_same_after_a_restart() -> None:
    store = MemoryStore()
    config = CompactConfig(model=MODEL, max_context_tokens=20_000)
    first = CompactManager(config, archive=archive_on(store))
    own, sent = agent(first, False, 20)
    first.close()
    second = CompactManager(config, archive=archive_on(store))
    again = second.preflight("s", copy.deepcopy(own[: 2 * 20 - 1]), tools=TOOLS, system=SYSTEM, model=MODEL)
    assert again == sent[-1]["messages"]
    assert len(second.archive.steps("s")) == len(first.archive.steps("s")) > 0
    second.close()


def test_a_host_may_move_its_cache_marks_after_a_step() -> None:
    made = managed()
    own, sent = agent(made, False, 12)
    assert made.archive.steps("s")
    marked = copy.deepcopy(own)
    marked[-3]["content"][0] = {**marked[-3]["content"][0], "cache_control": {"type": "ephemeral"}}
    body = body_of(made.preflight("s", marked, tools=TOOLS, system=SYSTEM, model=MODEL))
    assert problems(body) == []
    assert violations(body, in_flight=False, model=MODEL, previous=sent[-1]) == []
    made.close()


def test_a_pass_takes_thinking_first_and_folds_nothing_where_that_is_enough() -> None:
    made = managed(policy={"keep_recent_turns": 3})
    own: list[Item] = [ask("Begin.")]
    for n in range(12):
        body = body_of(own)
        own += [
            thinks(body, {"type": "text", "text": f"Said {n}."}, thought="deep thought " * 450),
            ask(f"Go {n}."),
        ]
    body = body_of(made.preflight("s", own, tools=TOOLS, system=SYSTEM, model=MODEL))
    assert len(made.archive.steps("s")) == 1
    assert blocks_in(body["messages"]) == []
    assert [bound_form(item, get("anthropic")) for item in body["messages"]] == [
        bound_form(item, get("anthropic")) for item in own
    ]
    assert made.preflight("s", own, tools=TOOLS, system=SYSTEM, model=MODEL) == body["messages"]
    stats = made.get_compaction_stats()
    assert list(stats["by_strategy"]) == ["thinking"]
    assert stats["total_tokens_saved"] == stats["by_strategy"]["thinking"] > 5_000
    assert made.archive.restore("s", step=1).messages == own
    made.close()


def test_a_block_before_the_first_change_stays() -> None:
    made = managed(max_context_tokens=40_000, policy={"keep_tool_io_pairs": 2})
    body = body_of([ask("Begin.")])
    own = [ask("Begin."), thinks(body, {"type": "text", "text": "Yes."}), ask("Look at two files.")]
    for n in range(6):
        own += [thinks(body_of(own), use(f"c{n}")), answer(f"c{n}", f"line {n} " * (3000 if n < 3 else 10))]
    out = made.preflight("s", own, tools=TOOLS, system=SYSTEM, model=MODEL)
    assert made.archive.steps("s")
    assert blocks_in(out) == [n for n in blocks_in(own) if n < differs_at(out, own)] != []
    assert problems(body_of(out)) == []
    made.close()


# --- what came in front of a block beside a pass


@pytest.mark.parametrize("keeps", [True, False])
def test_a_history_that_the_host_edited_loses_the_thinking_behind_its_edit(keeps: bool) -> None:
    made = managed(max_context_tokens=100_000)
    own, sent = agent(made, keeps, 5, words=20)
    own = copy.deepcopy(own)
    own[4]["content"][0]["content"] = "another result"
    _, after = agent(made, keeps, 3, own, words=20)
    assert blocks_in(after[0]["messages"]) == [1, 3]
    assert [problems(body) for body in after] == [[], [], []]
    assert blocks_in(after[2]["messages"]) == [1, 3, 11, 13]
    assert (
        violations(body_of(own), in_flight=False, model=MODEL, previous=sent[-1])[0].rule
        == "thinking_unbound"
    )
    made.close()


def test_another_system_prompt_or_tool_takes_all_thinking_out() -> None:
    made = managed(max_context_tokens=100_000)
    own, _ = agent(made, False, 4, words=20)
    tools = [*TOOLS, {"name": "late", "input_schema": {"type": "object"}, "defer_loading": True}]
    deferred = made.preflight("s", own, tools=tools, system=SYSTEM, model=MODEL)
    assert blocks_in(deferred) == blocks_in(own)
    system = [{"type": "text", "text": "You are quick."}]
    changed = made.preflight("s", own, tools=TOOLS, system=system, model=MODEL)
    assert blocks_in(changed) == []
    assert problems(body_of(changed, system=system)) == []
    made.close()


def test_a_huge_result_that_the_model_has_seen_whole_waits_for_the_next_pass() -> None:
    body = body_of([ask("Begin.")])
    own = [ask("Begin."), thinks(body, use("c0")), answer("c0", "long line " * 14_000)]
    own += [thinks(body_of(own), use("c1")), answer("c1", "short")]
    made = managed(max_context_tokens=200_000)
    own, after = agent(made, False, 3, own, words=20)
    assert [each["messages"][:5] for each in after] == [own[:5]] * 3
    assert [problems(each) for each in after] == [[], [], []]
    compacted = made.manual_compact("s", own, tools=TOOLS, system=SYSTEM, model=MODEL)
    assert "long line " * 1_000 not in str(compacted)
    assert problems(body_of(compacted)) == []
    made.close()


def test_other_workers_and_restarts_offload_the_same_results_as_before() -> None:
    store = MemoryStore()
    config = CompactConfig(model=MODEL, max_context_tokens=200_000)
    workers = [CompactManager(config, archive=archive_on(store)) for _ in range(2)]
    own: list[Item] = [ask("Begin.")]
    bodies: list[Item] = []
    for n in range(6):
        made = workers[n % 2]
        bodies.append(body_of(made.preflight("s", own, tools=TOOLS, system=SYSTEM, model=MODEL)))
        own += [
            thinks(bodies[-1], use(f"c{n}")),
            answer(f"c{n}", f"long line {n} " * (11_000 if n < 2 else 9)),
        ]
    assert [problems(each) for each in bodies] == [[]] * 6
    assert str(bodies[-1]["messages"][2:5]).count("[compact: ") == 2
    assert blocks_in(bodies[-1]["messages"]) == [1, 3, 5, 7, 9]
    for made in workers:
        made.close()


def test_blocks_that_another_model_does_not_read_are_taken_out() -> None:
    made = managed(max_context_tokens=100_000)
    own, _ = agent(made, False, 3, words=20)
    older = made.preflight("s", own, tools=TOOLS, system=SYSTEM, model="claude-opus-4-8")
    assert blocks_in(older) == []
    assert made.preflight("s", own, tools=TOOLS, system=SYSTEM, model="claude-opus-4-8") == older
    made.close()
    other = managed(max_context_tokens=100_000)
    own, _ = agent(other, False, 3, words=20)
    reads = other.preflight("s", own, tools=TOOLS, system=SYSTEM, model="claude-fable-5-1")
    assert blocks_in(reads) == blocks_in(own)
    assert problems(body_of(reads, "claude-fable-5-1")) == []
    other.close()


def test_what_is_taken_out_between_passes_is_archived_first() -> None:
    made = managed(max_context_tokens=100_000)
    own, _ = agent(made, False, 3, words=20)
    made.preflight("s", own, tools=TOOLS, system=SYSTEM, model="claude-opus-4-8")
    found = made.recall_tools("s")["grep"](pattern="hm hm", path="/conversation_history/")
    assert "hm hm" in str(found)
    made.close()


def chat_step(n: int) -> list[Item]:
    """LiteLLM keeps Claude's blocks in a field of chat messages and sends them on."""
    call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    blocks = [{"type": "thinking", "thinking": "hm", "signature": f"sig{n}"}]
    return [
        {"role": "assistant", "content": None, "tool_calls": [call], "thinking_blocks": blocks},
        {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} " * 350},
    ]


def ai_sdk_step(n: int) -> list[Item]:
    call = {"toolCallId": f"c{n}", "toolName": "look"}
    options = {"anthropic": {"signature": f"sig{n}"}}
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "hm", "providerOptions": options},
                {"type": "tool-call", **call, "args": {}},
            ],
        },
        {"role": "tool", "content": [{"type": "tool-result", **call, "result": f"line {n} " * 350}]},
    ]


@pytest.mark.parametrize(("dialect", "step"), [("chat", chat_step), ("ai_sdk", ai_sdk_step)])
@pytest.mark.parametrize("keeps", [True, False])
def test_signed_blocks_of_other_dialects_are_taken_out_too(dialect: str, step: Any, keeps: bool) -> None:
    made = managed(max_context_tokens=16_000, policy={"keep_tool_io_pairs": 2})
    own: list[Item] = [{"role": "user", "content": "Begin."}]
    sent: list[Item] = []
    stripped = 0
    for n in range(30):
        before, sent = sent, list(made.preflight("s", own, model=MODEL))
        is_pass = sent[: len(before)] != before
        stripped += is_pass
        assert is_pass or not before or get(dialect).read(sent[-2]).signed
        found = violations(sent, dialect, in_flight=False, model=MODEL, previous=before)
        assert found == [] or not before
        own = [*(sent if keeps else own), *step(n)]
    assert stripped == len(made.archive.steps("s")) > 1
    made.close()
