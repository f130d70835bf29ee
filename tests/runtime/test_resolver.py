"""Which session a call belongs to: one rule, for every way in which hosts keep and repeat their lists."""

from __future__ import annotations

import asyncio
import copy
import re
import threading
import uuid
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact.errors import ConfigError
from compact.runtime.resolver import SessionResolver

Item = dict[str, Any]


def user(text: str) -> Item:
    return {"role": "user", "content": text}


def says(text: str) -> Item:
    return {"role": "assistant", "content": text}


def system(text: str) -> Item:
    return {"role": "system", "content": text}


def resolver(**more: Any) -> SessionResolver:
    numbers = count(1)
    return SessionResolver(new_id=lambda: str(next(numbers)), **more)


def rebuilt(items: list[Item]) -> list[Item]:
    """The list as a host has it that reads it from its database before each call."""
    return copy.deepcopy(items)


# --- explicit


def test_an_explicit_id_is_the_id_whatever_else_is_known() -> None:
    names = resolver()
    for items in ([user("a")], [user("b")], []):
        assert names.resolve(items, session_id="mine", given="theirs") == "mine"
    assert (
        names.resolve([user("a")], session_id=lambda call: call["id"], call={"id": "found"}, given="x")
        == "found"
    )


@pytest.mark.parametrize("wrong", [42, "", b"id", "\ud800", ["id"], True])
def test_a_wrong_explicit_id_is_an_error(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="session_id must"):
        resolver().resolve([user("a")], session_id=lambda _: wrong)
    if not callable(wrong) and isinstance(wrong, str):
        with pytest.raises(ConfigError, match="session_id must"):
            resolver().resolve([user("a")], session_id=wrong)


# --- given


def test_an_id_that_the_host_gives_is_the_id_and_is_never_shared() -> None:
    """Two people who open with the same words."""
    names = resolver()
    for _ in range(3):
        assert names.resolve([user("Hi")], given="ann") == "ann"
        assert names.resolve([user("Hi")], given="bob") == "bob"
    assert names.resolve([user("Hi"), says("Hello"), user("A")], given="bob") == "bob"
    assert names.resolve([user("Hi"), says("Hello"), user("A")], given="ann") == "ann"


@pytest.mark.parametrize("id_", [7, uuid.UUID(int=7), "7"], ids=lambda id_: type(id_).__name__)
def test_an_id_may_be_a_number_or_a_uuid(id_: Any) -> None:
    assert resolver().resolve([user("a")], given=id_) == str(id_)


@pytest.mark.parametrize("wrong", [b"x", 1.5, True, ["a"], {"a": 1}, "\udcff"])
def test_an_id_of_another_kind_is_an_error(wrong: Any) -> None:
    with pytest.raises(ConfigError):
        resolver().resolve([user("a")], given=wrong)


def test_sub_agents_inside_an_id_are_told_apart_and_stay_so() -> None:
    names = resolver()
    main, sub = [user("Write a book")], [user("Find a title")]
    for n in range(5):
        assert names.resolve(rebuilt(main), given="t") == "t"
        assert names.resolve(rebuilt(sub), given="t") == "t.2"
        main += [says(f"m{n}"), user(f"and {n}")]
        sub += [says(f"s{n}"), user(f"or {n}")]


def test_agents_with_one_task_and_two_prompts_are_told_apart() -> None:
    names = resolver()
    task = user("Write a book")
    assert names.resolve([system("You plan."), task], given="t") == "t"
    assert names.resolve([system("You write."), task], given="t") == "t.2"
    assert names.resolve([system("You plan."), task, says("1"), user("go")], given="t") == "t"
    assert names.resolve([system("You write."), task, says("2"), user("go")], given="t") == "t.2"
    assert names.resolve([task], given="u", system="You plan.") == "u"
    assert names.resolve([task], given="u", system="You write.") == "u.2"


@pytest.mark.parametrize("given_id", ["t", None])
def test_a_prompt_with_the_time_in_it_changes_nothing(given_id: str | None) -> None:
    names, items = resolver(), [user("start")]
    found = set()
    for n in range(10):
        found.add(names.resolve([system(f"It is {n}:01."), *items], given=given_id))
        items += [says(f"a{n}"), user(f"q{n}")]
    assert len(found) == 1


@pytest.mark.parametrize("given_id", ["t", None])
def test_moving_cache_marks_change_nothing(given_id: str | None) -> None:
    names, texts = resolver(), ["start"]
    found = set()
    for n in range(10):
        blocks: list[Item] = [{"type": "text", "text": text} for text in texts]
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
        roles = ["user" if k % 2 == 0 else "assistant" for k in range(len(blocks))]
        items = [{"role": role, "content": [block]} for role, block in zip(roles, blocks, strict=True)]
        found.add(names.resolve(items, given=given_id))
        texts += [f"a{n}", f"q{n}"]
    assert len(found) == 1


def test_parallel_runs_with_the_same_opening_part_at_the_latest_when_both_went_on() -> None:
    names = resolver()
    one, two = [user("Go")], [user("Go")]
    seen: list[tuple[str, str]] = []
    for n in range(6):
        seen.append((names.resolve(rebuilt(one), given="t"), names.resolve(rebuilt(two), given="t")))
        one += [says(f"one {n}"), user("next")]
        two += [says(f"two {n}"), user("next")]
    assert all(a != b for a, b in seen[2:])
    assert len(set(seen[2:])) == 1


@pytest.mark.parametrize("copied", [False, True])
def test_an_edited_or_regenerated_list_stays_in_the_session_of_its_id(copied: bool) -> None:
    names = resolver()
    kept = rebuilt if copied else list
    items = [user("start"), says("a"), user("b"), says("c"), user("d")]
    edited = [*items[:4], user("D!")]
    regenerated = items[:3]
    for each in (
        items,
        edited,
        [*edited, says("e"), user("f")],
        regenerated,
        [*regenerated, says("C!"), user("g")],
    ):
        assert names.resolve(kept(each), given="t") == "t"


def test_a_branch_that_is_continued_beside_its_edit_is_another_conversation() -> None:
    names = resolver()
    items = [user("start"), says("a"), user("b")]
    edited = [*items[:2], user("B!")]
    assert names.resolve(items, given="t") == "t"
    assert names.resolve(edited, given="t") == "t"
    assert names.resolve([*items, says("c"), user("d")], given="t") == "t", "the longer one"
    assert names.resolve([*edited, says("c"), user("d")], given="t") == "t.2"
    for n in range(3):
        items += [says("c"), user("d")]
        edited += [says("c"), user("d")]
        assert names.resolve(rebuilt(items), given="t") == "t", n
        assert names.resolve(rebuilt(edited), given="t") == "t.2", n


def test_an_aside_does_not_take_the_session_away() -> None:
    """A host asks for a title in between, with the beginning of the same list."""
    names, items = resolver(), [user("start"), says("a"), user("b"), says("c"), user("d")]
    for n in range(5):
        assert names.resolve(rebuilt(items), given="t") == "t"
        assert names.resolve([*items[:2], user("Give this conversation a title.")], given="t") == "t"
        items += [says(f"a{n}"), user(f"q{n}")]


def test_an_empty_list_belongs_to_its_id_and_changes_nothing() -> None:
    names = resolver()
    assert names.resolve([], given="t") == "t"
    assert names.resolve([user("a")], given="t") == "t"
    assert names.resolve([], given="t") == "t"
    assert names.resolve([user("a"), says("b"), user("c")], given="t") == "t"
    assert names.resolve([]) == names.resolve([]) == names.nobody


def test_ids_that_look_like_ours_are_not_taken() -> None:
    names = resolver()
    assert names.resolve([user("x")], given="t.2") == "t.2"
    assert names.resolve([user("a")], given="t") == "t"
    assert names.resolve([user("b")], given="t") == "t.3"
    assert names.resolve([user("y")], given="t.3") == "t.3", "the host's own id is the id"
    assert names.resolve([user("b")], given="t") == "t.4"


def test_a_host_that_keeps_what_it_was_told_to_send_is_recognised() -> None:
    for given_id in ("t", None):
        names = resolver()
        items = [user("start"), says("a"), user("b")]
        name = names.resolve(items, given=given_id)
        summary = says("<COMPACT-SUMMARY v1>")
        names.note_sent(name, items, [summary, items[2]])
        for n in range(4):
            kept = [summary, items[2], *(m for k in range(n + 1) for m in (says(f"c{k}"), user(f"d{k}")))]
            assert names.resolve(rebuilt(kept), given=given_id) == name
            names.note_sent(name, kept, kept)
        # Its newest message is edited: what compact wrote is known to nobody else.
        assert names.resolve([*rebuilt(kept)[:-1], user("edited")], given=given_id) == name


# --- unnamed


def test_two_people_who_open_with_the_same_words_never_share_a_session() -> None:
    for kept in (rebuilt, list):
        names = resolver()
        ann, bob = [user("Hi")], [user("Hi")]
        of_ann, of_bob = set(), set()
        for n in range(5):
            of_ann.add(names.resolve(kept(ann)))
            of_bob.add(names.resolve(kept(bob)))
            ann += [says("Hello" if not n else f"a{n}"), user(f"Ann {n}")]
            bob += [says("Hello" if not n else f"b{n}"), user(f"Bob {n}")]
        assert not of_ann & of_bob
        if kept is list:
            assert len(of_ann) == len(of_bob) == 1, "the same objects tell them apart from the start"
        else:
            assert len(of_ann) <= 2


def test_a_list_of_the_same_objects_may_be_sent_again_once_it_has_more_than_its_opening() -> None:
    names = resolver()
    items = [user("Hi")]
    name = names.resolve(items)
    longer = [*items, says("Hello"), user("more")]
    assert names.resolve(longer) == names.resolve(list(longer)) == name
    assert names.resolve(items) != name, "anybody may begin so"
    assert names.resolve([*longer, says("Fine"), user("go on")]) == name


OPENINGS = {
    "one message": [user("Begin the interview.")],
    "a prompt and a message": [system("You interview."), user("Begin the interview.")],
    "examples": [
        system("You help."),
        *(each for n in range(6) for each in (user(f"example {n}"), says(f"answer {n}"))),
        user("Hi"),
    ],
}


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
@pytest.mark.parametrize("kept", [list, rebuilt], ids=["kept", "rebuilt"])
@pytest.mark.parametrize("order", ["one after the other", "in turns", "the second in between"])
def test_an_opening_that_many_are_sent_joins_nobody(opening: list[Item], kept: Any, order: str) -> None:
    """A constant of the program, with the same objects in everybody's list."""
    names = resolver()
    lists = {who: list(opening) for who in ("Ann", "Bob")}
    found: dict[str, list[str]] = {"Ann": [], "Bob": []}
    turns = {
        "one after the other": ["Ann"] * 6 + ["Bob"] * 6,
        "in turns": ["Ann", "Bob"] * 6,
        "the second in between": ["Ann"] * 3 + ["Bob"] * 6 + ["Ann"] * 3,
    }
    for n, who in enumerate(turns[order]):
        found[who].append(names.resolve(kept(lists[who])))
        lists[who] += [says("Welcome."), user(f"{who} says {n}")]
    assert not set(found["Ann"]) & set(found["Bob"])
    for who in found:
        assert len(set(found[who])) <= 2
        assert len(set(found[who][1:])) == 1, "it goes on in one session once its first reply is known"


def test_a_longer_opening_without_a_reply_joins_nobody() -> None:
    names, start = resolver(), user("Begin the interview.")
    ann = names.resolve([start])
    assert names.resolve([start, user("I am Bob.")]) != ann


def test_a_long_list_is_not_equal_by_chance() -> None:
    names = resolver()
    items = [user("start")]
    name = names.resolve(items)
    items += [m for n in range(6) for m in (says(f"a{n}"), user(f"q{n}"))]
    assert names.resolve(items) == names.resolve(rebuilt(items)) == name


def test_a_list_that_parts_from_a_known_one_is_a_new_conversation() -> None:
    names = resolver()
    items = [user("start"), *(m for n in range(6) for m in (says(f"a{n}"), user(f"q{n}")))]
    first = names.resolve(items)
    assert names.resolve([*items[:-1], user("edited")]) != first


def test_examples_that_all_conversations_begin_with_join_nobody() -> None:
    names = resolver()
    examples = [m for n in range(6) for m in (user(f"example {n}"), says(f"answer {n}"))]
    assert names.resolve([*examples, user("Ann")]) != names.resolve([*examples, user("Bob")])


def test_a_fresh_name_is_known_to_no_other_process() -> None:
    items = [user("Hi")]
    found = {SessionResolver().resolve(items, kind="litellm") for _ in range(50)}
    assert len(found) == 50
    assert all(re.fullmatch(r"litellm-[0-9a-f]{32}", name) for name in found), "128 bits"


def test_a_warning_says_that_an_unnamed_conversation_began() -> None:
    told: list[tuple[str, str]] = []
    names = resolver(warn=lambda name, code, _: told.append((name, code)))
    names.resolve([user("a")], given="t")
    names.resolve([user("a")], session_id="s")
    assert told == []
    ann = [user("a")]
    for items in (ann, [user("b")], [*ann, says("1"), user("2")]):
        names.resolve(items)
    assert told == [("conversation-1", "new_conversation"), ("conversation-2", "new_conversation")]


# --- tools


def test_a_tool_finds_the_session_of_its_list_and_makes_none() -> None:
    names = resolver()
    main, sub = [user("Write")], [user("Find")]
    for items, name in ((main, "t"), (sub, "t.2")):
        names.resolve(items, given="t")
        assert names.find([*rebuilt(items), says("calling")], given="t") == name
    assert names.find(given="t") == "t"
    assert names.find([user("never seen")], given="after-a-restart") == "after-a-restart"
    assert names.find([user("never seen")]) is None
    assert names.find(session_id="mine") == "mine"
    assert names.resolve([user("other")], given="t") == "t.3", "looking made no conversation"


def test_a_tool_finds_the_session_that_a_function_named() -> None:
    names = resolver()

    def by_user(call: Any) -> str:
        return str(call["user"])

    ann, bob = [user("Hi")], [user("Hi")]
    for items, name in ((ann, "ann"), (bob, "bob")):
        assert names.resolve(items, session_id=by_user, call={"user": name}) == name
    assert names.find([*ann, says("calling")], session_id=by_user) == "ann"
    assert names.find([*bob, says("calling")], session_id=by_user) == "bob"
    assert names.find(rebuilt(ann), session_id=by_user) is None, "two sessions could be meant"


def test_the_running_call_is_known_in_its_own_context_and_to_its_own_manager() -> None:
    import contextvars

    one, other = resolver(), resolver()

    def turn(name: str) -> tuple[str | None, str | None]:
        one.enter(name)
        return one.running, other.running

    contexts = [contextvars.copy_context() for _ in range(2)]
    assert [context.run(turn, name) for context, name in zip(contexts, "ab", strict=True)] == [
        ("a", None),
        ("b", None),
    ]
    assert one.running is None
    assert contexts[0].run(lambda: (one.running, one.certain, one.find())) == ("a", "a", None)


@pytest.mark.parametrize("first", ["main", "sub", "new"])
def test_after_a_restart_nobody_takes_the_session_of_another_agent(first: str) -> None:
    """Whichever agent of an id calls first, each finds what is stored under its own name."""
    main, sub, new = [user("Write a book")], [user("Find a title")], [user("Check a fact")]
    stored = {"t": main, "t.2": sub}

    def belongs(name: str, items: list[Any]) -> bool | None:
        return items[:1] == stored[name] if name in stored else None

    agents = {"main": (main, "t"), "sub": (sub, "t.2"), "new": (new, "t.3")}
    names = resolver(belongs=belongs)
    items, name = agents.pop(first)
    expected = "t.3" if first == "new" else name
    assert names.find([*items, says("calling")], given="t") == (None if first == "new" else name)
    assert names.resolve(rebuilt(items), given="t") == expected
    for others, of in agents.values():
        assert names.resolve(rebuilt(others), given="t") == of
        assert names.find([*rebuilt(others), says("calling")], given="t") == of


def test_a_place_that_served_several_sessions_knows_none_for_certain() -> None:
    names = resolver()
    found: list[tuple[str | None, str | None]] = []
    for name in ("ann", "bob", "ann"):
        names.enter(name)
        found.append((names.certain, names.running))
    assert found == [("ann", "ann"), (None, "bob"), (None, "ann")], "the next tool call may be anybody's"

    async def serve(name: str) -> tuple[str | None, ...]:
        before = names.certain
        names.enter(name)
        in_child = await asyncio.create_task(look())
        return before, names.certain, in_child, await asyncio.to_thread(lambda: names.certain)

    async def look() -> str | None:
        return names.certain

    async def both() -> list[tuple[str | None, ...]]:
        names.enter("warm-up")
        return list(await asyncio.gather(serve("ann"), serve("bob")))

    assert asyncio.run(both()) == [(None, "ann", None, "ann"), (None, "bob", None, "bob")]
    in_thread: list[str | None] = []

    def work() -> None:
        names.enter("ann")
        in_thread.append(names.certain)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert in_thread == [None]


@pytest.mark.parametrize("copied", [False, True], ids=["kept", "rebuilt"])
def test_the_right_to_read_ends_with_the_next_list(copied: bool) -> None:
    """Whoever goes on, the call before it may have been another person's with the same words."""
    names, items = resolver(), [user("Hi")]
    kept = rebuilt if copied else list
    name = names.resolve(kept(items))
    names.enter(name)
    names.note_calls(name, ["call_0"])
    assert [names.certain, names.find_asked("call_0")] == [name, name]
    call = {"role": "assistant", "tool_calls": [{"id": "call_0"}], "content": None}
    items += [call, user("more")]
    assert names.resolve(kept(items)) == name
    assert [names.certain, names.find_asked("call_0")] == [None, None]
    names.enter(name)
    assert [names.certain] == [name]


def test_a_list_by_its_words_alone_must_show_every_call_of_the_model() -> None:
    """Two people say the same, but the model made its call to one of them."""
    names, items = resolver(), [user("Hi")]
    ann = names.resolve(items)
    names.note_calls(ann, ["call_7"])
    went_on = [*rebuilt(items), says("Hello"), user("And now?")]
    assert names.resolve(went_on) != ann


def test_a_list_by_its_words_alone_must_have_the_same_prompt() -> None:
    names = resolver()
    talk = [user("Hi"), *(m for n in range(8) for m in (says(f"a{n}"), user(f"q{n}")))]
    ann = names.resolve([system("You serve Ann."), talk[0]])
    assert names.resolve([system("You serve Ann."), *talk]) == ann
    assert names.resolve(rebuilt([system("You serve Bob."), *talk])) != ann
    assert names.resolve(rebuilt([system("You serve Bob."), *talk, says("x"), user("y")])) != ann


@pytest.mark.parametrize("call_id", ["call_0", "functions.grep:3", "1"])
def test_a_numbered_call_id_alone_reads_nothing_beside_replies_that_nobody_showed(call_id: str) -> None:
    names = resolver()
    names.note_calls("ann", [call_id])
    assert names.find_asked(call_id) == "ann"
    names.note_unseen("bob")
    assert names.find_asked(call_id) is None
    names.note_calls("bob", ["another"])
    assert names.find_asked(call_id) == "ann"
    names.note_calls("bob", [call_id])
    assert names.find_asked(call_id) is None, "both were asked so"


def test_an_id_that_no_reply_contained_is_not_that_of_a_session_whose_replies_are_known() -> None:
    names = resolver()
    names.enter("ann")
    assert names.find_asked("text-agents-make-their-own") == "ann"
    names.note_calls("ann", ["call_of_ann"])
    assert names.find_asked("call_of_somebody") is None
    assert names.find_asked("call_of_ann") == "ann"


def test_a_list_that_is_not_known_reads_nothing_even_if_a_call_runs() -> None:
    names = resolver()
    names.enter(names.resolve([user("Ann's words")]))
    assert names.find([user("Bob's words")]) is None
    assert names.find([user("Bob's words")], session_id=lambda _: "bob") is None


# --- all of it


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_two_conversations_share_a_session_at_the_same_time(data: st.DataObject) -> None:
    """People talk at once, their lists are rebuilt or kept, some ids are given: nobody ever gets another's session."""
    names = resolver()
    words = st.sampled_from(["Hi", "ok", "go on"])
    people = []
    for n in range(data.draw(st.integers(2, 4), "people")):
        people.append(
            (data.draw(st.sampled_from([None, f"id{n}"])), data.draw(st.booleans()), [user(data.draw(words))])
        )
    owner: dict[str, tuple[int, list[Item]]] = {}
    for _ in range(data.draw(st.integers(4, 16), "calls")):
        index = data.draw(st.integers(0, len(people) - 1))
        given_id, copied, items = people[index]
        name = names.resolve(rebuilt(items) if copied else list(items), given=given_id)
        before = owner.get(name)
        if before is not None and before[0] != index:
            # Only what had been said by both, word for word, may have been in it.
            assert items[: len(before[1])] == before[1]
        owner[name] = (index, list(items))
        items += [says(data.draw(words)), user(data.draw(words))]


# --- a first request that is tried again


def try_twice(names: SessionResolver) -> tuple[list[Item], str, str]:
    items = [user("Hi")]
    first = names.resolve(items)
    names.enter(first)
    second = names.resolve(items)
    names.enter(second)
    return items, first, second


def test_a_first_request_that_is_tried_again_does_not_blind_the_tools() -> None:
    names = resolver()
    items, _, second = try_twice(names)
    assert names.certain == second
    for n in range(3):
        items += [says("Hello"), user(f"go on {n}")]
        name = names.resolve(items)
        names.enter(name)
        assert names.certain == name


@pytest.mark.parametrize("came", ["calls", "a result", "calls that nobody sees", "a summary"])
def test_a_try_of_which_something_came_may_be_another_person(came: str) -> None:
    """Even if it comes later, such as the calls of a stream that is read at the end."""
    names = resolver()
    items, first, _ = try_twice(names)
    if came == "calls":
        names.note_calls(first, ["call_1"])
    elif came == "a result":
        names.note_stored(first, "/results/1")
    elif came == "a summary":
        names.note_sent(first, items, [says("summary")])
    else:
        names.note_unseen(first)
    assert names.certain is None


@pytest.mark.parametrize("other", [[user("Hi")], [system("For Bob"), user("Hi")]], ids=["words", "a prompt"])
def test_the_same_words_alone_are_no_second_try(other: list[Item]) -> None:
    names = resolver()
    for items in ([user("Hi")], other):
        names.enter(names.resolve(items))
    assert names.certain is None


def test_an_object_that_is_used_for_everybody_is_no_second_try() -> None:
    names, message = resolver(), user("I am Ann")
    names.enter(names.resolve([message]))
    message["content"] = "I am Bob"
    names.enter(names.resolve([message]))
    assert names.certain is None
