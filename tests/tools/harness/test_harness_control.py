"""Control: every corruption of the authority is found, nothing else is, on generated and on real sessions."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.harness import Artifact, independent_count, message, output, real_artifacts, system, task

from compact.harness import HarnessConfig, control_changes, stabilize, validate

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

SETTINGS = HarnessConfig(budget=10_000, pii="none")
KINDS = ("moved", "dropped", "altered", "duplicated")


def session(source: random.Random) -> list[Artifact]:
    """A session whose authority artifacts all differ, in any order."""
    made = [system(f"Rule {source.random()}") for _ in range(source.randint(1, 3))]
    made += [task(f"Job {source.random()}") for _ in range(source.randint(0, 2))]
    made += [message(f"word {source.random()}") for _ in range(source.randint(1, 12))]
    made += [output(f"out {source.random()}") for _ in range(source.randint(0, 4))]
    source.shuffle(made)
    return made


def corrupted(context: list[Artifact], how: str, source: random.Random) -> list[Artifact]:
    rules = [n for n, one in enumerate(context) if one["kind"] in ("system", "task")]
    victim = source.choice(rules)
    found = list(context)
    if how == "dropped":
        del found[victim]
    elif how == "altered":
        words = found[victim]["content"]
        place = source.randrange(len(words))
        found[victim] = {**found[victim], "content": f"{words[:place]}~{words[place + 1 :]}"}
    elif how == "duplicated":
        found.insert(source.randint(0, len(found)), dict(found[victim]))
    else:
        one = found.pop(victim)
        places = [place for place in range(len(found) + 1) if place != victim]
        found.insert(source.choice(places), one)
    return found


def order_of(context: list[Artifact], made_from: list[Artifact]) -> list[str]:
    (check,) = [
        check for check in validate(context, SETTINGS, source=made_from).checks if check["name"] == "order"
    ]
    assert check["passed"] is not bool(check["details"])
    return list(check["details"])


def test_the_order_check_catches_1000_corruptions_and_passes_every_clean_one() -> None:
    source = random.Random(9)
    seen: Counter[str] = Counter()
    for _ in range(1_000):
        given = session(source)
        clean = [dict(one) for one in stabilize(given, SETTINGS).artifacts]
        assert order_of(clean, given) == []
        how = KINDS[seen.total() % len(KINDS)]
        broken = corrupted(clean, how, source)
        assert broken != clean
        assert order_of(broken, given), (how, broken)
        seen[how] += 1
    assert set(seen.values()) == {250}


@given(st.data())
def test_a_corrupted_turn_of_any_session_is_named(data: st.DataObject) -> None:
    source = random.Random(data.draw(st.integers(0, 10_000)))
    clean = [dict(one) for one in stabilize(session(source), SETTINGS).artifacts]
    turns: list[Any] = [clean] * data.draw(st.integers(2, 5))
    assert control_changes(turns) == []
    place = data.draw(st.integers(1, len(turns) - 1))
    turns[place] = corrupted(clean, data.draw(st.sampled_from(KINDS)), source)
    told = control_changes(turns)
    assert told
    assert {line.partition(":")[0] for line in told} == {f"turn {place + 1}"}


def test_what_happened_is_said_in_words() -> None:
    whole = [system("S", id="s"), task("T", id="t"), message("hi")]

    def said(turn: list[Artifact]) -> list[str]:
        return control_changes([whole, turn])

    assert said(whole[1:]) == ["turn 2: s (system) was pushed out of the context"]
    assert said([whole[2], *whole[:2]]) == [
        "turn 2: s (system) stands at place 2, behind message-0 (message)",
        "turn 2: t (task) stands at place 3, behind message-0 (message)",
    ]
    assert "turn 2: s (system) was altered: sha256 " in said([{**whole[0], "content": "X"}, *whole[1:]])[0]
    assert said([whole[0], *whole]) == ["turn 2: s (system) is duplicated"]
    assert said([whole[0], system("more", id="n"), *whole[1:]]) == ["turn 2: n (system) was added"]
    two = [system("A", id="a"), system("B", id="b")]
    assert control_changes([two, two[::-1]]) == [
        "turn 2: b (system) was moved: it stands where a stood",
        "turn 2: a (system) was moved: it stands where b stood",
    ]


def test_messages_of_a_dialect_are_compared_too() -> None:
    turns = [
        [{"role": "system", "content": "Obey."}, {"role": "user", "content": "one"}],
        [{"role": "system", "content": "Obey"}, {"role": "user", "content": "two"}],
    ]
    assert control_changes(turns)[0].startswith("turn 2: m0 (system) was altered")


def test_every_turn_is_assembled_when_asked_and_a_late_loss_is_named() -> None:
    """A heuristic that forgets the system prompt as soon as there are more than ten artifacts, then finds it again."""

    def forgetful(entries: Any, config: Any) -> Any:
        from compact.tools.harness.heuristics import newest_first

        chosen = list(newest_first(entries, config))
        lost = 10 < len(entries) < 15
        return [choice for choice in chosen if not (lost and choice.entry.kind == "system")]

    talk = [message(f"word {n}") for n in range(20)]
    once = stabilize([system("S"), *talk], HarnessConfig(heuristic=forgetful, pii="none"))
    assert once.report.passed, "the last turn alone does not show it"
    every = stabilize([system("S"), *talk], HarnessConfig(heuristic=forgetful, pii="none", every_turn=True))
    details = every.report.checks[2]["details"]
    assert details == [f"turn {n}: system-0 (system) was pushed out of the context" for n in range(10, 14)]


@pytest.mark.sweep
@pytest.mark.parametrize("budget", [500, 8_000])
def test_every_real_session_keeps_its_authority_and_its_budget_by_an_independent_count(budget: int) -> None:
    source = random.Random(budget)
    sessions = real_artifacts() if budget == 8_000 else real_artifacts()[::10]
    for name, artifacts in sessions:
        done = stabilize(artifacts, HarnessConfig(budget=budget, pii="none"))
        context = [dict(one) for one in done.artifacts]
        counted = independent_count(context)
        verdict = {check["name"]: check["passed"] for check in done.report.checks}
        assert done.report.tokens == counted, name
        assert verdict == {"pii": True, "budget": counted <= budget, "order": True}, name
        assert len(context) + len(done.report.dropped) == len(artifacts)
        if any(one["kind"] == "system" for one in context):
            for how in KINDS:
                broken = corrupted(context, how, source)
                assert broken == context or order_of(broken, artifacts), (name, how)
