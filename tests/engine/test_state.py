"""What is remembered of a session, and which lists it is recognised in."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.engine import says, user

from compact.engine.context import Row
from compact.engine.effects import Loaded
from compact.engine.intake import Working, find_places
from compact.engine.state import (
    SessionState,
    describe_sides,
    describe_state,
    fingerprint,
    rebuild_sides,
    resolve,
    restore_state,
)
from compact.messages import Message, Text, dialects

SUMMARY = user("SUMMARY")
HISTORY = [user("one"), says("two"), user("three")]
STATE = SessionState(step=1, replaced=HISTORY, standing=[SUMMARY, HISTORY[2]], sources=[None, 2], asked=True)


def test_of_a_new_session_nothing_is_remembered_and_its_list_is_its_context() -> None:
    new = SessionState()
    assert (new.step, new.tokens_after, new.ineffective, new.asked) == (0, 0, 0, False)
    assert resolve(new, HISTORY) == Working(HISTORY, range(3))


@pytest.mark.parametrize("more", [[], [says("four")]])
def test_a_host_that_keeps_what_it_was_given_is_recognised(more: list[Any]) -> None:
    given = [*copy.deepcopy([SUMMARY, HISTORY[2]]), *more]
    working = resolve(STATE, given)
    assert working is not None
    assert working.items is given
    assert working.sources == range(len(given))


@pytest.mark.parametrize("more", [[], [says("four")]])
def test_a_host_that_passes_its_full_history_gets_what_stands_for_it(more: list[Any]) -> None:
    given = [*copy.deepcopy(HISTORY), *more]
    working = resolve(STATE, given)
    assert working is not None
    assert working.items == [SUMMARY, HISTORY[2], *more]
    assert working.items[1] is given[2], "the host's own object, not the remembered copy"
    assert working.sources == [None, 2, *([3] if more else [])]


@pytest.mark.parametrize(
    "given",
    [HISTORY[:2], [], [SUMMARY], [user("other"), *HISTORY[1:]], [*HISTORY[:2], user("other"), says("four")]],
)
def test_a_list_that_does_not_continue_is_not_recognised(given: list[Any]) -> None:
    assert resolve(STATE, given) is None
    assert resolve(SessionState(step=1, standing=STATE.standing, sources=STATE.sources), given) is None


def test_a_state_without_its_messages_recognises_nothing() -> None:
    assert resolve(SessionState(step=1), HISTORY) is None
    assert resolve(SessionState(step=1, replaced=HISTORY), HISTORY) is None
    assert resolve(SessionState(step=1, standing=[SUMMARY]), HISTORY) is None


def beginning(*items: Any) -> SessionState:
    return SessionState(step=1, standing=items, sources=[None] * len(items))


def test_a_cache_mark_makes_no_other_message_wherever_it_stands() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}

    def result(**where: Any) -> dict[str, Any]:
        text = {"type": "text", "text": "x", **where.get("text", {})}
        block = {"type": "tool_result", "tool_use_id": "t", "content": [text], **where.get("block", {})}
        return {"role": "user", "content": [block], **where.get("message", {})}

    for marked in (result(message=mark), result(block=mark), result(text=mark)):
        assert resolve(beginning(result()), [marked]) is not None
        assert resolve(beginning(marked), [result()]) is not None
        assert fingerprint([marked]) == fingerprint([result()])
    assert resolve(beginning(result()), [{**result(), "other": 1}]) is None


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_words_of_a_prompt_may_change_between_two_calls(role: str) -> None:
    before, now = ({"role": role, "content": f"It is {hour} o'clock."} for hour in (3, 4))
    assert resolve(beginning(before), [now, user("go")]) is not None
    assert fingerprint([before]) == fingerprint([now])
    other = {"role": "developer" if role == "system" else "system", "content": "It is 3 o'clock."}
    assert resolve(beginning(before), [other]) is None


def test_what_is_no_message_is_the_same_only_if_it_is_equal() -> None:
    assert resolve(beginning("a"), ["a"]) is not None
    assert resolve(beginning("a"), ["b"]) is None


@pytest.mark.parametrize(
    "nest", [lambda inner: [inner], lambda inner: {"more": inner}], ids=["lists", "objects"]
)
def test_deep_nesting_is_compared_without_deep_recursion(nest: Callable[[Any], Any]) -> None:
    deep: Any = "leaf"
    for _ in range(600):
        deep = nest(deep)
    one, other = {"role": "user", "content": deep}, {"role": "user", "content": deep, "cache_control": {}}
    assert resolve(beginning(one), [other]) is not None


def rows() -> list[Row]:
    return [Row(Message("user", (Text("SUMMARY"),)), 3, None), Row(Message("user", (Text("three"),)), 2, 2)]


def archived() -> Loaded:
    """The state of the step, through the archive and back."""
    state, fingerprints = describe_state(HISTORY, rows(), [SUMMARY, HISTORY[2]], frozenset({"b", "a"}), 5, 1)
    return Loaded(7, json.loads(json.dumps(state)), fingerprints)


def test_the_record_of_a_step_says_how_to_make_its_context() -> None:
    assert archived().state == {
        "version": 1,
        "replaced": 3,
        "recipe": [{"item": SUMMARY}, 2],
        "summaries": ["a", "b"],
        "tokens_after": 5,
        "ineffective": 1,
    }
    assert archived().fingerprints == {
        "replaced": fingerprint(HISTORY),
        "standing": fingerprint([SUMMARY, HISTORY[2]]),
    }


@pytest.mark.parametrize("more", [[], [says("four")]])
def test_both_kinds_of_list_are_recognised_by_the_record(more: list[Any]) -> None:
    common: dict[str, Any] = {
        "step": 7,
        "summaries": frozenset({"a", "b"}),
        "tokens_after": 5,
        "ineffective": 1,
        "asked": True,
    }
    kept = [SUMMARY, HISTORY[2]]
    assert restore_state(archived(), [*copy.deepcopy(kept), *more]) == SessionState(
        **common, standing=kept, sources=[None, None]
    )
    assert restore_state(archived(), [*copy.deepcopy(HISTORY), *more]) == SessionState(
        **common, replaced=HISTORY, standing=kept, sources=[None, 2]
    )


@pytest.mark.parametrize(
    "given", [[], HISTORY[:2], [SUMMARY], [*HISTORY[:2], user("x"), says("y")], [5, 5, 5]]
)
def test_a_list_that_the_record_does_not_speak_of_is_not_recognised(given: list[Any]) -> None:
    assert restore_state(archived(), given) is None


def test_a_record_of_another_version_is_not_read() -> None:
    state = {**archived().state, "version": 2}
    assert restore_state(Loaded(7, state, archived().fingerprints), HISTORY) is None


def test_a_fingerprint_is_the_same_in_any_process_and_any_order_of_keys() -> None:
    known = "a68a7e079163339e9bdb4d8e7c0a112ce83c2cd07a17dead3906953e7e1def4f"
    assert fingerprint([{"role": "user", "content": "Grüße"}]) == known
    assert fingerprint([{"content": "Grüße", "role": "user"}]) == known
    assert fingerprint([user("Gruß")]) != known
    assert fingerprint([user("Grüße"), user("Grüße")]) != known


def test_a_fingerprint_takes_the_digests_at_hand() -> None:
    known: dict[int, bytes] = {}
    first = fingerprint(HISTORY, known)
    assert set(known) == {id(item) for item in HISTORY}
    known[id(HISTORY[0])] = b"other"
    assert fingerprint(HISTORY, known) != first == fingerprint(HISTORY)


# --- both sides of a step


def described(
    given: list[Any], stood: list[Any], after: list[Any], places: list[int | None]
) -> tuple[dict[str, Any], list[Row], list[Row]]:
    """What a record says of a step whose rows cost 10, 11, 12 ... raw tokens, 1.35 of the model's each."""
    chat = dialects.get("chat")
    before = [Row(chat.read(item), 10 + n, n) for n, item in enumerate(stood)]
    standing = [
        Row(chat.read(item), 10 + n, None) if place is None else before[place]
        for n, (item, place) in enumerate(zip(after, places, strict=True))
    ]
    record = describe_sides(given, stood, before, standing, after, lambda raw: -(-raw * 135 // 100))
    return json.loads(json.dumps(record)), before, standing


REPAIRED = [says("one"), user("two"), says("three, mended")]


@pytest.mark.parametrize(
    ("given", "stood"),
    [
        (HISTORY, HISTORY),
        ([user("orphan"), *HISTORY], HISTORY),
        ([HISTORY[0], user("lost"), HISTORY[2]], [HISTORY[2], says("written"), HISTORY[0]]),
        (HISTORY, REPAIRED),
        ([HISTORY[0]] * 3, [HISTORY[0]] * 2),
    ],
    ids=["as given", "removed", "moved and added", "all mended", "one object three times"],
)
def test_both_sides_are_rebuilt_from_the_record_and_the_hosts_list(
    given: list[Any], stood: list[Any]
) -> None:
    after: list[Any] = [SUMMARY, stood[-1]]
    record, before, standing = described(given, stood, after, [None, len(stood) - 1])
    found = rebuild_sides(record, copy.deepcopy(given))
    assert (found.before, found.after, found.places) == (stood, after, [None, len(stood) - 1])
    assert found.levels == ["whole", "whole"]
    assert sum(found.tokens_before) == -(-sum(row.tokens for row in before) * 135 // 100)
    assert sum(found.tokens_after) == -(-sum(row.tokens for row in standing) * 135 // 100)
    assert (record["before"] is None) is (stood is given)


def test_a_place_is_found_for_each_use_of_an_object() -> None:
    one, two = user("same"), user("same")
    assert find_places([one, two, one], [one, one, one, two]) == [0, 2, None, 1]
