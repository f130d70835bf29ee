"""Hosts of Anthropic move their cache marks: whatever compact writes, a request never has more than the provider takes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from support.engine import events, manager
from support.standins import TOOLS

from compact.checks import violations
from compact.messages.cache_marks import (
    count_marks,
    has_mark,
    keep_marks,
    limit_marks,
    longest_life,
    make_room,
    mark_frame,
    mark_of,
    with_mark,
    without_marks,
)
from compact.tools.standins import anthropic_problems, prefix_breaks
from compact.tools.standins.script import Received

Item = dict[str, Any]
MARK = {"type": "ephemeral"}


class Host:
    """An agent's loop that marks its newest messages. It holds a list and passes it, or what it got back, each time."""

    def __init__(self, marks: int, keeps_result: bool, moves: str) -> None:
        self.marks, self.keeps_result, self.moves = marks, keeps_result, moves
        self.history: list[Item] = []
        self.marked: list[Item] = []

    def request(self, *new: Item) -> list[Item]:
        """The list that is passed: the history and new messages, marked."""
        self.history += new
        if self.moves == "on a copy":
            found = copy.deepcopy(self.history)
            for item in found[-self.marks :] if self.marks else ():
                self._mark(item)
            return found
        if self.moves == "by scanning":
            for item in self.history:
                self._unmark(item)
        else:  # it remembers the messages that it marked
            for item in self.marked:
                self._unmark(item)
        self.marked = self.history[-self.marks :]
        for item in self.marked:
            self._mark(item)
        return self.history

    def sent(self, out: list[Item], reply: Item) -> None:
        if self.keeps_result:
            self.history = list(out)
        self.history.append(reply)

    @staticmethod
    def _mark(item: Item) -> None:
        if isinstance(item["content"], str):
            item["content"] = [{"type": "text", "text": item["content"]}]
        item["content"][-1]["cache_control"] = dict(MARK)

    @staticmethod
    def _unmark(item: Item) -> None:
        for block in item["content"] if isinstance(item["content"], list) else ():
            block.pop("cache_control", None)


def turn(n: int) -> tuple[Item, Item]:
    """The n-th reply, and what the host adds after it. Some results are huge, so that they are offloaded when they arrive."""
    size = 1500 if n % 7 == 3 else 300
    use = {"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {"n": n}}
    lines = "\n".join(f"row {n}.{k}: value {n * 31 + k} of station {k % 13}" for k in range(size // 10))
    result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": lines}
    reply = {"role": "assistant", "content": [{"type": "text", "text": f"Step {n}."}, use]}
    if n % 5 == 4:
        return {"role": "assistant", "content": f"Part {n} is done."}, {
            "role": "user",
            "content": f"Now do part {n}.",
        }
    return reply, {"role": "user", "content": [result]}


def run(host: Host, count: int, system_marks: int = 0) -> tuple[list[Received], int]:
    """Run a host for so many turns. Returns its requests and the number of steps. Each request is checked."""
    system = [
        {"type": "text", "text": f"Rule {n}.", "cache_control": dict(MARK)} for n in range(system_marks)
    ] or None
    made = manager(8_000, offload={"large_result_tokens": 600})
    requests: list[Received] = []
    new: Item = {"role": "user", "content": "Read all parts and never change the units."}
    for n in range(count):
        given = host.request(new)
        before = copy.deepcopy(given)
        out = made.preflight("s", given, tools=TOOLS, system=system)
        assert given == before, "the host's messages were changed"
        body = {"model": "claude", "max_tokens": 9, "messages": out, "tools": TOOLS, "system": system}
        assert anthropic_problems(body) == [], (n, host.marks, host.keeps_result, host.moves)
        assert count_marks(*out[-host.marks :]) >= 1, "the newest messages keep a mark"
        requests.append(Received(n, "anthropic", body, {}, copy.deepcopy(out)))
        reply, new = turn(n)
        host.sent(out, copy.deepcopy(reply))
    steps = len(made.archive.steps("s"))
    assert len([e for e in events(made, name="trigger_decision") if e["properties"]["triggered"]]) >= steps
    made.close()
    return requests, steps


@pytest.mark.parametrize("moves", ["on a copy", "by reference"])
@pytest.mark.parametrize("keeps_result", [False, True], ids=["full history", "keeps the result"])
def test_moving_marks_are_never_too_many(keeps_result: bool, moves: str) -> None:
    requests, steps = run(Host(4, keeps_result, moves), 25)
    assert steps >= 1
    assert prefix_breaks(requests) <= steps, "between two steps only marks move"


@pytest.mark.slow
@pytest.mark.parametrize("moves", ["on a copy", "by scanning", "by reference"])
@pytest.mark.parametrize("keeps_result", [False, True], ids=["full history", "keeps the result"])
@pytest.mark.parametrize("marks", [1, 2, 3, 4])
def test_moving_marks_are_never_too_many_in_hundreds_of_turns(
    marks: int, keeps_result: bool, moves: str
) -> None:
    requests, steps = run(Host(marks, keeps_result, moves), 300)
    assert steps >= 10
    assert prefix_breaks(requests) <= steps


@pytest.mark.parametrize("marks", [0, 1])
def test_the_frame_is_marked_as_long_as_it_stands_if_the_host_uses_marks(marks: int) -> None:
    """However far the host's one mark has moved on, head, ledger and summary are read from the cache."""
    host = Host(marks, False, "on a copy")
    made = manager(5_000)
    stands: list[tuple[int, Item]] = []
    for n in range(24):
        given = host.request({"role": "user", "content": f"Step {n}. " + f"station {n} is open. " * 30})
        out = made.preflight("s", given, dialect="anthropic")
        body = {"model": "claude", "max_tokens": 9, "messages": out}
        assert anthropic_problems(body) == []
        step = len(made.archive.steps("s"))
        stands += [(step, item) for item in out if "<COMPACT-" in str(item["content"])[:60]]
        host.sent(out, {"role": "assistant", "content": f"Done {n}. " * 20})
    made.close()
    assert stands
    assert len(stands) > stands[-1][0] > 1
    assert all(has_mark(item) == bool(marks) for _, item in stands)
    assert len({str(one) for one in stands}) == stands[-1][0], "its bytes are the same up to the next step"


# --- one message


def words(text: str, **more: Any) -> Item:
    return {"type": "text", "text": text, **more}


def marked(text: str) -> Item:
    return {"role": "user", "content": [words(text, cache_control=MARK)]}


def test_marks_are_found_wherever_the_provider_counts_them() -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": [words("x", cache_control=MARK)]}
    item = {"role": "user", "content": [result, words("y", cache_control=MARK)]}
    assert count_marks(item) == 2
    assert (
        count_marks(
            [words("rule", cache_control=MARK)], [{"name": "read", "cache_control": MARK}], None, "text"
        )
        == 2
    )
    assert has_mark(item)
    assert without_marks(item) == {
        "role": "user",
        "content": [{**result, "content": [words("x")]}, words("y")],
    }
    plain = {"role": "user", "content": "x"}
    assert without_marks(plain) is plain
    assert mark_of(plain) is None


def test_a_mark_goes_on_the_last_block_that_can_carry_one() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    item = {"role": "assistant", "content": [words("x"), thinking]}
    assert with_mark(item, MARK)["content"] == [words("x", cache_control=MARK), thinking]
    assert with_mark({"role": "user", "content": "x"}, MARK)["content"] == [words("x", cache_control=MARK)]
    assert with_mark({"role": "assistant", "content": [thinking]}, MARK)["content"] == [thinking]


def test_surplus_marks_go_from_what_compact_wrote_and_then_from_the_oldest() -> None:
    items = [
        marked("first"),
        marked("[compact: the output is in /x]"),
        marked("second"),
        marked("third"),
        marked("fourth"),
        marked("fifth"),
    ]
    assert limit_marks(items, 6) is items
    assert [has_mark(item) for item in limit_marks(items, 5)] == [True, False, True, True, True, True]
    assert [has_mark(item) for item in limit_marks(items, 2)] == [False, False, False, False, True, True]
    assert not any(map(has_mark, limit_marks(items, -1)))
    two = [{"role": "user", "content": [words("a", cache_control=MARK), words("b", cache_control=MARK)]}]
    assert limit_marks(two, 1)[0]["content"] == [words("a"), words("b", cache_control=MARK)]


def test_a_mark_stays_on_what_replaced_a_message_while_the_host_marks_that_message() -> None:
    plain, summary, pointer = {"role": "user", "content": "c"}, marked("summary"), marked("[compact: x]")
    standing, sources = [summary, pointer, plain], [None, None, 2]
    both = keep_marks([marked("a"), marked("b"), plain], standing, sources)
    assert both == standing
    one = keep_marks([marked("a"), {"role": "user", "content": "b"}, plain], standing, sources)
    assert [has_mark(item) for item in one] == [True, False, False]
    none = keep_marks([plain, plain, marked("c")], [summary, pointer, marked("c")], sources)
    assert [has_mark(item) for item in none] == [False, False, True]
    pinned_first = keep_marks([marked("a"), plain, plain], [plain, summary], [1, None])
    assert pinned_first == [plain, summary], "what is pinned may stand before the summary of what is older"


def test_a_frame_gets_the_mark_of_the_next_marked_message_if_there_is_room() -> None:
    frame: Item = {"role": "assistant", "content": "<COMPACT-SUMMARY v1>\nDone.\n</COMPACT-SUMMARY>"}
    hour = {"type": "ephemeral", "ttl": "1h"}
    plain: Item = {"role": "user", "content": "c"}
    newest: Item = {"role": "user", "content": [words("n", cache_control=MARK)]}
    system = [words("rule", cache_control=hour)]
    found = mark_frame([frame, plain, newest], [None, 4, 5], system)
    assert mark_of(found[0]) == MARK, "lives must not grow along a request"
    assert mark_of(mark_frame([frame, plain], [None, 4], system)[0]) == hour
    assert mark_frame([frame, plain], [None, 4]) == [frame, plain], "the host uses no marks"
    full = [frame, *[newest] * 4]
    assert mark_frame(full, [None, 1, 2, 3, 4]) == full, "no room"
    assert mark_frame([frame, newest], [0, 1]) == [frame, newest], "a frame that the host wrote is not ours"


def test_the_mark_of_the_whole_request_takes_the_place_of_ours() -> None:
    frame: Item = {
        "role": "user",
        "content": [words("<COMPACT-LEDGER v1>\nNo tabs.\n</COMPACT-LEDGER>", cache_control=MARK)],
    }
    newest: Item = {"role": "user", "content": [words("n", cache_control=MARK)]}
    reply = {**newest, "role": "assistant"}
    system = [words("rule", cache_control=MARK)]
    items = [frame, reply, newest]
    assert make_room(items, None, system) is items
    assert make_room(items[:2], MARK, system) == items[:2], "there is room"
    bare, *others = make_room(items, MARK, system)
    assert mark_of(bare) is None
    assert others == [reply, newest]
    body = {"messages": items, "system": system, "cache_control": MARK}
    assert [found.rule for found in violations(body, "anthropic")] == ["cache_marks"]
    assert violations({**body, "messages": [bare, *others]}, "anthropic") == []


def test_the_life_that_marks_ask_for_is_the_longest() -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert longest_life(None, None, [{"role": "user", "content": "x"}]) == 0
    assert longest_life([words("rule", cache_control=hour)], None, [marked("x")]) == 3_600
    assert longest_life(None, [{"name": "read", "cache_control": MARK}], []) == 300
    assert (
        longest_life(None, None, [{"role": "user", "content": [{"cachePoint": {"type": "default"}}]}]) == 300
    )
