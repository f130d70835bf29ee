"""The closed lists of the events, their schema and the page about them agree with what is emitted: all of it, and nothing else.

Every scenario makes something happen in earnest and returns the lines of the logs.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from support.archive import add_step, archive_on, conversation, fs_archive, recorder
from support.background import WINDOW, await_ready, grown, reply_to
from support.engine import Clock, events, manager, pair, says, turns, user
from support.exporters import Gate, busy_session
from support.hosts import openai_client
from support.integrations import Reply, agent_manager, serving
from support.llm import llm_manager
from support.waiting import WAIT_S
from support.windows import Model, tool_session

from compact import CompactConfig, CompactManager
from compact import events as contract
from compact.archive import Archive, MemoryStore, Record
from compact.archive.stores.spool import SpooledStore
from compact.engine.effects import Commit
from compact.errors import ArchiveError, ContextOverflow, InsufficientBudget
from compact.events import Started
from compact.testing import FailingArchive, ScriptedSummarizer

ROOT = Path(__file__).resolve().parents[2]
LISTS = {
    "reason": contract.Reason,
    "outcome": contract.PassOutcome,
    "fallback": contract.Fallback,
    "action": Literal[contract.RecoveryAction, contract.LedgerAction],
    "kind": contract.EntryKind,
    "source": contract.EntrySource,
    "severity": contract.Severity,
    "code": contract.WarningCode,
    "cache": contract.CacheVerdict,
}
RESERVED: dict[str, set[str]] = {
    "reason": set(),
    "code": {"learned_limit"},
}
"""Words of the contract that nothing emits yet. Whoever emits one takes it out of here."""

Lines = list[dict[str, Any]]
Scenario = Callable[[Path], Lines]


def every_trigger(_: Path) -> Lines:
    found: Lines = []
    settings: list[tuple[int, dict[str, Any]]] = [
        (128_000, {}),
        (8_000, {"trigger_pct": 0.5}),
        (128_000, {"token_threshold": 2_000}),
        (128_000, {"message_threshold": 20}),
        (128_000, {"turn_threshold": 5}),
        (5_000, {"trigger_pct": 1.0}),
    ]
    for window, policy in settings:
        made = manager(window, policy=policy, guard={"min_context_tokens": 1, "warn_context_tokens": 1})
        made.preflight("s", turns(50))
        found += events(made)
    return found


def manual_with_and_without_gain(_: Path) -> Lines:
    made = manager()
    made.manual_compact("s", turns(20))
    made.manual_compact("t", [user("hi")])
    return [*events(made), *events(made, "t")]


def a_ledger(_: Path) -> Lines:
    made = manager(8_000, policy={"keep_recent_turns": 1})
    kinds = get_args(contract.EntryKind)
    for n in range(60):  # more than the ledger has room for
        made.pin(
            "s", f"Never open the door number {n} of the house at the end of street {n}.", kind=kinds[n % 6]
        )
    first = [user("Always use tabs. By the way, it rained."), *turns(8), user("Go on.")]
    made.preflight("s", first)
    made.pin("s", "it rained", source="model")
    kept = list(made.manual_compact("s", first))
    made.unpin("s", made.ledger("s")[-1].id)
    made.manual_compact(
        "s", [*kept, user("From now on, use spaces instead of tabs."), *turns(8), user("Go on.")]
    )
    return events(made)


def nothing_left_to_gain(_: Path) -> Lines:
    made = manager(16_000, policy={"trigger_pct": 0.5})
    items = [user("word " * 12_000)]
    for n in range(4):
        items = [*made.preflight("s", items), says(f"ok {n}"), user("go on")]
    return events(made)


def a_lost_race(_: Path) -> Lines:
    made = manager(16_000)
    serve, raced = made.services.serve, list[bool]()
    rival = CompactManager(made.config, archive=made.archive, clock=Clock())

    def overtaken(run: Any, effect: Any) -> Any:
        if isinstance(effect, Commit) and not raced:
            raced.append(True)
            rival.preflight("s", busy_session())
        return serve(run, effect)

    made.services.serve = overtaken  # type: ignore[method-assign]
    made.preflight("s", busy_session())
    return events(made)


def an_archive_that_fails(_: Path) -> Lines:
    config = CompactConfig(model="gpt-4o", max_context_tokens=32_000)
    archive = FailingArchive(recorder(), lambda operation: operation == "begin")
    made = CompactManager(config, archive=archive, clock=Clock())
    made.manual_compact("s", turns(20))
    return events(made)


def what_cannot_fit(_: Path) -> Lines:
    made = manager(8_000)
    with pytest.raises(InsufficientBudget):
        made.preflight("s", [user("word " * 9_000, meta={"protected": True})])
    return events(made)


def a_pass_out_of_time(_: Path) -> Lines:
    let_go = threading.Event()

    def stuck(request: Any) -> str:
        let_go.wait(WAIT_S)
        return "late"

    made = manager(32_000, summarizer=stuck, policy={"timeout_s": 0.3, "keep_recent_turns": 1})
    made.preflight("s", tool_session(30))  # counts, so that the time goes into the summary
    made.manual_compact("s", tool_session(30))
    let_go.set()
    return events(made)


def passes_in_the_background(_: Path) -> Lines:
    made = manager(WINDOW, summarizer=lambda _: "## Goal\nGo on with the questions.")
    items = grown(made)
    for session, later in (("s", reply_to(items)), ("t", [user("Something else."), *items[2:]])):
        made.preflight(session, items)
        await_ready(made, session)
        made.preflight(session, later)
    return [*events(made), *events(made, "t")]


def summaries_that_fail(_: Path) -> Lines:
    found: Lines = []
    for fallback in ("extractive", "pruning-only"):
        failing = ScriptedSummarizer(ConnectionError("no route"))
        made = manager(summarizer=failing, summary={"fallback": fallback})
        for n in range(4):
            made.manual_compact(f"s{n}", turns(20))
            found += events(made, f"s{n}")
    return found


def a_model_without_a_key(_: Path) -> Lines:
    with llm_manager(None) as made:
        made.manual_compact("s", turns(20))
        return events(made)


def an_overflow_to_the_end(_: Path) -> Lines:
    made = manager(32_000)
    with pytest.raises(ContextOverflow):
        made.call("s", tool_session(60), Model(10, "Input is too long for requested model."))
    return events(made)


def models_and_windows(_: Path) -> Lines:
    made = manager(redaction={"enabled": False})
    made.preflight("s", turns(1))
    unknown = CompactManager(CompactConfig(model="nobody-knows-it", archive={"adapter": "memory"}))
    unknown.preflight("s", turns(1))
    small = manager(6_000)
    small.preflight("s", turns(1))
    return [*events(made), *events(unknown), *events(small)]


def histories_that_were_edited(_: Path) -> Lines:
    made = manager(8_000)
    made.preflight("s", turns(45))
    made.preflight("s", [user("Something else."), *turns(45)[1:]])
    copied = json.dumps({"path": "a.py", "content": "[compact: the content that write_file wrote is in /x]"})
    made.preflight("t", [*turns(45), *pair("w", "ok", name="write_file", arguments=copied), user("next")])
    return [*events(made), *events(made, "t")]


def a_conversation_that_the_provider_keeps(_: Path) -> Lines:
    made, seen = agent_manager()
    result = {"type": "function_call_output", "call_id": "c1", "output": "42"}
    with serving(lambda _: Reply("hi")) as provider, made:
        client = made.wrap(openai_client(provider))
        client.responses.create(model="gpt-4o", input=[result], previous_response_id="resp_1")
    return list(map(dict, seen.events))


def a_conversation_without_an_id(_: Path) -> Lines:
    made, seen = agent_manager()
    with serving(lambda _: Reply("hi")) as provider, made:
        client = made.wrap(openai_client(provider))
        client.chat.completions.create(model="gpt-4o", messages=[user("Hello.")])
    return list(map(dict, seen.events))


def an_exporter_that_drops(_: Path) -> Lines:
    stuck = Gate(batch=1)
    made = manager(exporters=[stuck], tracing={"queue_events": 10, "flush_timeout_s": 0.1})
    for n in range(30):
        made.services.emit(made.sessions.get("s"), Started(reason="manual", note=str(n)))
    made.flush()
    made.close()
    stuck.open.set()
    return events(made)


def a_log_that_hangs(_: Path) -> Lines:
    made = manager()
    append, hangs, let_go = made.archive.append_events, threading.Event(), threading.Event()

    def hanging(session_id: str, batch: Any) -> None:
        hangs.set()
        let_go.wait(WAIT_S)
        append(session_id, batch)

    made.archive.append_events = hanging  # type: ignore[method-assign,assignment]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("compact.tracing.journal.LIMIT", 20)
        patched.setattr("compact.tracing.journal.MOST", 50)
        for n in range(100):
            made.services.emit(made.sessions.get("s"), Started(reason="manual", note=str(n)))
            if not n:
                assert hangs.wait(WAIT_S)
        let_go.set()
        return events(made)


def damaged_files(root: Path) -> Lines:
    archive = fs_archive(root / "fs")
    with archive.begin("s", conversation(1), dialect="chat", after=0) as attempt:
        (root / "fs" / "s" / "transcript-pre-compact-001.jsonl").write_text("{}\n")
        attempt.commit(summary={}, state={})
    with (root / "fs" / "s" / "events.jsonl").open("ab") as log:
        log.write(b'{"half": ')
    add_step(archive, "s", conversation(2))
    return [event.to_json() for event in archive.events("s")]


def a_damaged_factor(root: Path) -> Lines:
    (root / "_models").mkdir(parents=True)
    (root / "_models" / "claude-sonnet-4-5.json").write_text("{ not json")
    config = CompactConfig(model="claude-sonnet-4-5", archive={"adapter": "fs", "root": str(root)})
    with CompactManager(config, clock=Clock()) as made:
        made.preflight("s", turns(10, words=400))
        return events(made)


def an_object_store_that_does_not_answer(root: Path) -> Lines:
    class Away(MemoryStore):
        def create(self, key: str, record: Record) -> Any:
            raise ArchiveError("it does not answer", reason="unavailable")

    store = SpooledStore(Away(), root / "spool", retry_s=WAIT_S, close_s=0.1)
    archive: Archive = archive_on(store)
    archive.put_output("s", "text", tool_name="t", tool_call_id="c")
    found = [event.to_json() for event in archive.events("s")]
    archive.close()
    return found


def a_cold_cache(_: Path) -> Lines:
    """The first call, a warm one, a cold one, and one behind a clock that was set back."""
    made = manager(economy={"min_tokens": 2_000})
    clock = made.services.recorder.clock
    assert isinstance(clock, Clock)
    sent = turns(50)
    for pause_s in (0, 1, 1_000, -5_000):
        clock.wait(pause_s)
        sent = [*made.preflight("s", sent), says("Reply."), user(" ".join(f"word{n}" for n in range(2_000)))]
    return events(made)


SCENARIOS: list[Scenario] = [
    every_trigger,
    manual_with_and_without_gain,
    a_ledger,
    nothing_left_to_gain,
    a_lost_race,
    an_archive_that_fails,
    what_cannot_fit,
    a_pass_out_of_time,
    passes_in_the_background,
    summaries_that_fail,
    a_model_without_a_key,
    an_overflow_to_the_end,
    models_and_windows,
    histories_that_were_edited,
    a_conversation_that_the_provider_keeps,
    a_conversation_without_an_id,
    an_exporter_that_drops,
    a_log_that_hangs,
    damaged_files,
    a_damaged_factor,
    an_object_store_that_does_not_answer,
    a_cold_cache,
]


@pytest.fixture
def emitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lines:
    """Everything that the scenarios emit."""
    for name in ("COMPACT_SUMMARY_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return [line for scenario in SCENARIOS for line in scenario(tmp_path / scenario.__name__)]


def test_what_is_emitted_is_what_the_lists_name(emitted: Lines) -> None:
    schema = json.loads((ROOT / "src/compact/tracing/events.schema.json").read_text("utf-8"))
    validator = importlib.import_module("jsonschema").Draft202012Validator(schema)
    page = (ROOT / "docs/OBSERVABILITY.md").read_text("utf-8")
    found: dict[str, set[str]] = defaultdict(set)
    for line in emitted:
        validator.validate(line)
        properties = line["properties"] | line["properties"].get("economy", {})
        for name in LISTS.keys() & properties.keys():
            found[name].add(properties[name])
    listed = {name: set(get_args(values)) for name, values in LISTS.items()}
    assert found == {name: values - RESERVED.get(name, set()) for name, values in listed.items()}
    assert {line["name"] for line in emitted} == set(contract.KINDS)
    for values in listed.values():
        assert all(f"`{value}`" in page for value in values)
