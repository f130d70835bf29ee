"""The engine on an archive in an object store that two workers share: they take turns on a session, and race for it."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from support.archive import make_bucket
from support.engine import manager, pair, says, summary_of, turns, user
from support.s3 import faulty_server
from support.workers import (
    KEY,
    SESSION,
    Answer,
    Item,
    Place,
    Worker,
    WorkerProcess,
    assert_fine,
    assert_nothing_lost,
    turn_of,
)

from compact import CompactManager
from compact.redaction import Redactor

# Most of its time passes in the store and in other processes.
pytestmark = [pytest.mark.usefixtures("aws"), pytest.mark.no_cover]

TURNS = 12
LAYERED: dict[str, Any] = {}
SELECTIVE: dict[str, Any] = {"policy": {"layout": "selective", "retention_window": 3}}
_numbers = itertools.count(1)


@pytest.fixture
def place(moto: str, tmp_path: Path) -> Callable[..., Place]:
    """Makes a bucket of its own for every test."""

    def make(**settings: Any) -> Place:
        bucket = f"engine-{next(_numbers)}"
        make_bucket(moto, bucket)
        return Place(moto, bucket, str(tmp_path), settings=settings)

    return make


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def over_the_wire(messages: Any) -> list[Item]:
    """A host that keeps its list in a database: what another worker gets is equal, and no object is the same."""
    found: list[Item] = json.loads(json.dumps(list(messages)))
    return found


def alone(settings: dict[str, Any], keeps_result: bool) -> tuple[list[list[Item]], int]:
    """What one process with an archive in memory sends, turn by turn, and how many steps it makes."""
    with manager(4_000, **settings) as made:
        sent, history = [], []
        for number in range(TURNS):
            history += turn_of(number)
            sent.append(over_the_wire(made.preflight(SESSION, history)))
            if keeps_result:
                history = copy.deepcopy(sent[-1])
        return sent, len(made.archive.steps(SESSION))


def together(workers: list[Worker], method: str, *arguments: Any) -> list[Answer]:
    """The same call of all of them at the same moment."""
    gate = Barrier(len(workers))

    def call(worker: Worker) -> Answer:
        own = copy.deepcopy(arguments)
        gate.wait(20)
        return worker.ask(method, *own)

    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(call, workers))


def check(
    place: Place, sent: list[Item], won: dict[int, list[Item]], count: int = TURNS, session: str = SESSION
) -> None:
    """Read by a third worker, who only knows the bucket; it can go on with the list."""
    with place.manager("reader") as reader:
        assert_nothing_lost(reader.archive, count, sent, won, session)
        after = reader.preflight(session, [*sent, *turn_of(count)])
        assert_fine(reader, after)
        assert after[-1] == turn_of(count)[-1]


# --- taking turns


@pytest.mark.parametrize("keeps_result", [True, False])
@pytest.mark.parametrize("settings", [LAYERED, SELECTIVE], ids=["layered", "selective"])
def test_workers_that_take_turns_send_what_one_process_would(
    place: Callable[..., Place], opened: ExitStack, settings: dict[str, Any], keeps_result: bool
) -> None:
    where = place(**settings)
    workers = [opened.enter_context(Worker(where, name)) for name in "ab"]
    expected, steps = alone(settings, keeps_result)
    history: list[Item] = []
    won: dict[int, list[Item]] = {}
    for number in range(TURNS):
        history += turn_of(number)
        answer = workers[number % 2].ask("preflight", SESSION, over_the_wire(history))
        assert over_the_wire(answer.result) == expected[number], number
        if answer.step:
            won[answer.step] = over_the_wire(answer.result)
        if keeps_result:
            history = over_the_wire(answer.result)
    assert len(won) == steps > 2
    check(where, over_the_wire(answer.result), won)


def test_processes_that_race_and_are_killed_between_turns_send_what_one_process_would(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    """Two sessions: the host of one keeps the list that it gets back, that of the other passes its full history."""
    where = place()
    expected = {"keeps": alone(LAYERED, True), "passes-all": alone(LAYERED, False)}
    history: dict[str, list[Item]] = {name: [] for name in expected}
    sent: dict[str, list[Item]] = {}
    won: dict[str, dict[int, list[Item]]] = {name: {} for name in expected}
    workers = [opened.enter_context(WorkerProcess(where)) for _ in range(2)]
    for number, name in itertools.product(range(TURNS), expected):
        history[name] += turn_of(number)
        for worker in workers:
            worker.send("preflight", name, history[name])
        answers = [worker.answer() for worker in workers]
        sent[name] = expected[name][0][number]
        for answer in answers:
            assert answer.result == sent[name], number
            if answer.step:
                assert answer.step not in won[name], "two workers made the same step"
                won[name][answer.step] = sent[name]
        if name == "keeps":
            history[name] = list(answers[number % 2].result)
        elif number == TURNS // 2:
            workers[0].kill()
            workers[0] = opened.enter_context(WorkerProcess(where))
    for name, (_, steps) in expected.items():
        assert len(won[name]) == steps > 2
        check(where, sent[name], won[name], session=name)


# --- racing


@pytest.mark.parametrize("keeps_result", [True, False])
@pytest.mark.parametrize("settings", [LAYERED, SELECTIVE], ids=["layered", "selective"])
def test_workers_that_race_every_turn_get_the_same_list_and_make_each_step_once(
    place: Callable[..., Place], opened: ExitStack, settings: dict[str, Any], keeps_result: bool
) -> None:
    where = place(**settings)
    workers = [opened.enter_context(Worker(where, name)) for name in "ab"]
    expected, steps = alone(settings, keeps_result)
    history: list[Item] = []
    won: dict[int, list[Item]] = {}
    for number in range(TURNS):
        history += turn_of(number)
        answers = together(workers, "preflight", SESSION, history)
        for answer in answers:
            assert over_the_wire(answer.result) == expected[number], number
            if answer.step:
                assert answer.step not in won, "two workers made the same step"
                won[answer.step] = over_the_wire(answer.result)
        if keeps_result:
            history = over_the_wire(answers[number % 2].result)
    assert len(won) == steps > 2
    check(where, over_the_wire(answers[0].result), won)


def test_workers_that_are_at_different_turns_of_a_session_stay_legal_and_lose_nothing(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    """One lags behind: its list is shorter than what the other has compacted already."""
    where = place()
    ahead, behind = (opened.enter_context(Worker(where, name)) for name in "ab")
    won: dict[int, list[Item]] = {}

    def go(worker: Worker, head_start: int) -> list[Item]:
        history = [message for number in range(head_start) for message in turn_of(number)]
        sent: list[Item] = []
        for number in range(head_start, TURNS):
            history += turn_of(number)
            answer = worker.ask("preflight", SESSION, over_the_wire(history))
            sent = over_the_wire(answer.result)
            assert_fine(worker.made, sent)
            assert sent[-1] == history[-1]
            if answer.step:
                assert won.setdefault(answer.step, sent) is sent, "two workers made the same step"
        return sent

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(go, (ahead, behind), (5, 0)))
    for sent in results:
        assert_nothing_lost(ahead.made.archive, TURNS, sent, won)
    check(where, results[0], won)


def test_a_manual_compaction_of_both_at_once_is_made_once(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    where = place()
    workers = [opened.enter_context(Worker(where, name)) for name in "ab"]
    history = [message for number in range(6) for message in turn_of(number)]
    answers = together(workers, "manual_compact", SESSION, history, "both asked")
    one, two = (over_the_wire(answer.result) for answer in answers)
    assert one == two
    assert sorted((answer.step or 0) for answer in answers) == [0, 1]
    assert summary_of(one).startswith("<COMPACT-SUMMARY v1>")
    check(where, one, {1: one}, 6)


def test_an_event_loop_with_two_managers_makes_each_step_once(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    where = place()
    made = [opened.enter_context(where.manager(name)) for name in "ab"]

    async def go() -> list[list[Item]]:
        history: list[Item] = []
        for number in range(8):
            history += turn_of(number)
            both = await asyncio.gather(*(each.apreflight(SESSION, history) for each in made))
            assert over_the_wire(both[0]) == over_the_wire(both[1])
        return [over_the_wire(each) for each in both]

    sent = asyncio.run(go())
    steps = made[0].archive.steps(SESSION)
    assert steps
    assert steps == list(range(1, len(steps) + 1))
    finished = [e for each in made for e in flushed(each) if e["name"] == "compact.finished"]
    assert sum(e["properties"]["outcome"] == "compacted" for e in finished) / len(made) == len(steps)
    assert_fine(made[1], sent[0])


def flushed(made: CompactManager) -> list[dict[str, Any]]:
    made.flush()
    return [event.to_json() for event in made.archive.events(SESSION)]


# --- what one worker archived, the other reads


def test_each_worker_restores_what_the_other_compacted(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    where = place()
    workers = [opened.enter_context(Worker(where, name)) for name in "ab"]
    history: list[Item] = []
    given: dict[int, list[Item]] = {}
    for number in range(TURNS):
        history += turn_of(number)
        answer = workers[number % 2].ask("preflight", SESSION, history)
        if answer.step:
            given[answer.step] = over_the_wire(history)
        history = over_the_wire(answer.result)
    assert len(given) > 2
    assert any(KEY in json.dumps(messages) for messages in given.values())
    for worker in workers:
        for step, messages in given.items():
            restored = worker.made.archive.restore(SESSION, step).messages
            assert restored == Redactor().redact_messages(messages), step


def test_citations_of_one_worker_s_summary_resolve_for_the_other(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    where = place()
    one, two = (opened.enter_context(Worker(where, name)) for name in "ab")
    rule = "Never delete the table of invoices."
    history = [user(rule), says("Understood."), *(m for n in range(6) for m in turn_of(n))]
    first = over_the_wire(one.ask("manual_compact", SESSION, history).result)
    again = [*first, *(m for n in range(6, 12) for m in turn_of(n))]
    second = over_the_wire(two.ask("manual_compact", SESSION, again).result)
    reader = one.made.archive
    cited = 0
    for line in summary_of(second).splitlines():
        for step, number in re.findall(r"\[(?:v(\d+) )?m(\d+)\]", line):
            cited += 1
            message = reader.restore(SESSION, int(step or 2)).messages[int(number) - 1]
            if rule in line:
                assert message["content"] == rule
            for mark in re.findall(r"(?:ask|row|did)-\d+-", line):
                assert mark in json.dumps(message), line
    assert cited > 6
    assert rule in summary_of(second)


def test_an_output_that_both_offload_is_stored_once_and_either_can_read_it(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    where = place(offload={"large_result_tokens": 500})
    workers = [opened.enter_context(Worker(where, name)) for name in "ab"]
    rows = [f"row {n}: invoice {n * n} of {KEY}" for n in range(400)]
    history = [user("List the invoices."), *pair("call-1", "\n".join(rows), name="query")]
    shown = [over_the_wire(answer.result) for answer in together(workers, "preflight", SESSION, history)]
    assert shown[0] == shown[1]
    (path,) = set(re.findall(r"/tool_outputs/[\w.-]+\w", shown[0][-1]["content"]))
    for worker in workers:
        assert [file.path for file in worker.made.archive.files(SESSION)] == [path]
        tools = worker.made.recovery_tools(SESSION)
        assert "row 399: invoice 159201" in tools["grep"]("invoice 159201")
        assert "row 0: invoice 0" in tools["read_file"](path)
        assert path in tools["ls"]("/")
        assert path in tools["search"]("invoice 159201")
        assert KEY not in tools["read_file"](path)
    assert (
        over_the_wire(workers[1].ask("preflight", SESSION, [*history, says("ok")]).result)[2] == shown[0][2]
    )


def test_a_broken_list_is_mended_alike_and_what_is_removed_is_kept_once(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    where = place()
    workers = [opened.enter_context(Worker(where, name)) for name in "ab"]
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "an orphan"}
    answers = together(workers, "preflight", SESSION, [user("go"), orphan, says("done")])
    assert [over_the_wire(answer.result) for answer in answers] == [[user("go"), says("done")]] * 2
    (kept,) = workers[0].made.archive.files(SESSION)
    assert "an orphan" in workers[1].made.archive.read_text(SESSION, kept.path)


def test_a_worker_whose_history_was_edited_starts_again_on_top_of_the_other_s_steps(
    place: Callable[..., Place], opened: ExitStack
) -> None:
    where = place()
    one, two = (opened.enter_context(Worker(where, name)) for name in "ab")
    history = turns(25)
    first = one.ask("preflight", SESSION, history)
    edited = [user("Question 0, asked otherwise?"), *history[1:]]
    second = two.ask("preflight", SESSION, over_the_wire(edited))
    assert (first.step, second.step) == (1, 2)
    assert_fine(two.made, second.result)
    assert two.made.archive.restore(SESSION, 1).messages == history
    assert one.made.archive.restore(SESSION, 2).messages == edited
    assert one.made.archive.verify(SESSION) == []
    for worker, its_own in ((one, history), (two, edited)):
        assert_fine(worker.made, worker.ask("preflight", SESSION, [*its_own, user("Go on.")]).result)


# --- a store that fails one of them


@pytest.mark.parametrize("part", ["state-001.json", "-transcript", "-summary", "events/"])
def test_a_worker_whose_answer_was_lost_and_one_that_races_it_agree(
    place: Callable[..., Place], opened: ExitStack, moto: str, part: str
) -> None:
    where = place()
    faults = opened.enter_context(faulty_server(moto))
    faults.on("PUT", part, "lost", times=1)
    flaky = opened.enter_context(Worker(Place(faults.address, where.bucket, where.folder), "flaky"))
    steady = opened.enter_context(Worker(where, "steady"))
    history = [message for number in range(10) for message in turn_of(number)]
    answers = together([flaky, steady], "preflight", SESSION, history)
    one, two = (over_the_wire(answer.result) for answer in answers)
    assert one == two
    check(where, one, {1: one}, 10)


def test_a_worker_that_the_store_refuses_leaves_the_session_to_the_other_and_comes_back(
    place: Callable[..., Place], opened: ExitStack, moto: str
) -> None:
    where = place()
    faults = opened.enter_context(faulty_server(moto))
    cut_off = opened.enter_context(Worker(Place(faults.address, where.bucket, where.folder), "cut-off"))
    steady = opened.enter_context(Worker(where, "steady"))
    history = [message for number in range(4) for message in turn_of(number)]
    assert cut_off.ask("preflight", SESSION, history).result is history, "it fits: nothing to do"
    faults.on("PUT", "-transcript", "403")
    history += [message for number in range(4, 10) for message in turn_of(number)]
    with pytest.raises(Exception, match="could not write"):
        cut_off.ask("preflight", SESSION, history)
    first = steady.ask("preflight", SESSION, over_the_wire(history))
    assert first.step == 1
    faults.never()
    back = cut_off.ask("preflight", SESSION, history)
    assert over_the_wire(back.result) == over_the_wire(first.result)
    check(where, over_the_wire(back.result), {1: over_the_wire(first.result)}, 10)
