"""Limits, room, rounds, languages and sameness of summaries without a model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.data import bundled_sessions
from support.engine import pair, says, user
from support.strategies import examples
from support.summaries import count, neutral, session, summary, under

from compact.messages import dialects
from compact.summaries import extractive
from compact.summaries.checking.claims import words_of
from compact.summaries.request import SummaryRequest

STRATEGIES = ["task_state", "decision_log", "code_delta", "brief"]
_HASHED = """
import sys
sys.path.insert(0, {tests!r})
from support.summaries import session, summary
for strategy in {strategies!r}:
    print(summary(session("entire-ce"), strategy, 900, previous=summary(session("openhands"), strategy, 900)))
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("tokens", [1, 12, 40, 150, 300, 700, 2000])
def test_never_over_its_limit_and_well_filled(strategy: str, tokens: int) -> None:
    """Field failure: summaries grow with each round."""
    for recorded in bundled_sessions():
        messages = dialects.read(recorded["messages"])[1]
        used = count(summary(messages, strategy, tokens))
        assert used <= tokens
        if tokens >= 300:
            whole = sum(count(text) for message in messages for text in words_of(message))
            assert used >= min(0.85 * tokens, 0.9 * whole), recorded["id"]


@given(st.lists(st.text(max_size=300), max_size=12), st.integers(0, 300), st.text(max_size=400))
@settings(max_examples=examples(60), deadline=None)
def test_any_words_at_all_stay_within_the_limit(said: list[str], tokens: int, previous: str) -> None:
    messages = neutral([says(text) for text in said])
    assert count(summary(messages, "task_state", tokens, previous)) <= tokens


def test_the_same_bytes_in_every_process() -> None:
    tests = str(Path(__file__).resolve().parents[1])
    code = _HASHED.format(tests=tests, strategies=STRATEGIES)
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(printed) == 1


@pytest.mark.parametrize("strategy", ["task_state", "decision_log", "code_delta", "brief"])
def test_facts_of_the_first_round_that_are_still_spoken_of_survive_twenty_rounds(strategy: str) -> None:
    first = [
        says("We decided to use ledger_v7 instead of SQLite, because the deploy key is DK-4471-A."),
        *pair("c0", "LEDGER_PORT = 8437\nregion = eu-west-3", arguments='{"path": "conf/ledger_v7.ini"}'),
    ]
    text = summary(neutral(first), strategy, 500)
    for n in range(1, 20):
        noise = "\n".join(f"record_{n}_{k} = value{n * k}" for k in range(60))
        later = [
            says(f"Round {n}: checking ledger_v7 with DK-4471-A again."),
            *pair(f"c{n}", noise, arguments=f'{{"path": "data/part_{n}.txt"}}'),
        ]
        text = summary(neutral(later), strategy, 500, previous=text, previous_step=n)
        assert count(text) <= 500
    because = " :: " if "ledger_v7 instead of SQLite ::" in text else ", "
    assert f"ledger_v7 instead of SQLite{because}because the deploy key is DK-4471-A" in text
    assert "[v1 m1]" in text, "a citation of an earlier step names it, however many came since"
    assert text.count("## Next step") <= 1, "headings do not pile up"


def test_a_summary_of_another_hand_is_carried_too() -> None:
    previous = "# Notes\n* The invoice is INV-2291 and the customer is Zoë Ångström."
    text = summary(neutral([says("I'll look at INV-2291 next.")]), "task_state", 300, previous)
    assert "The invoice is INV-2291 and the customer is Zoë Ångström." in text


@pytest.mark.parametrize(
    ("decision", "constraint"),
    [
        ("我们决定采用 Redis，因为它更快。", "必须在周五之前完成。"),
        ("Redis を採用することにしました。速いためです。", "金曜日以内に必ず終えてください。"),
        (
            "Wir haben uns für Redis entschieden, weil es schneller ist.",
            "Es darf nicht länger als bis Freitag dauern.",
        ),
        ("Мы решили взять Redis, потому что он быстрее.", "Это нельзя откладывать до субботы."),
        ("Hemos decidido usar Redis porque es más rápido.", "Nunca debe tardar más que el viernes."),
    ],
)
def test_decisions_and_constraints_in_other_languages(decision: str, constraint: str) -> None:
    filler = [says(f"{n}. " + "OK " * 3) for n in range(4)]
    text = summary(neutral([user("?"), says(decision), *filler, says(constraint), says("OK.")]), tokens=600)
    start = decision[:10]
    assert any(start in line for line in under(text, "Decisions")), text
    assert any(constraint[:8] in line for line in under(text, "Constraints")), text


def test_a_plain_chat_without_any_cue_still_fills_its_room() -> None:
    talk = [says(f"Der Fluss Nr. {n} fließt durch Ort{n} und Stadt{n}, {n * 7} km weit.") for n in range(80)]
    used = count(summary(neutral(talk), tokens=800))
    assert 0.85 * 800 <= used <= 800


def test_the_users_words_are_quoted_as_the_users() -> None:
    said = neutral([user("Never push to main_v2."), says("Understood.")])
    assert '- user said: "Never push to main_v2." [m1]' in summary(said, tokens=300).splitlines()


def test_the_users_words_are_left_to_those_who_carry_them() -> None:
    never, other = "Never push anything to main_v2.", "Deploy everything to stage_v3."
    said = neutral([user(never), user(other), says("Understood.")])

    def quoted(*carried: str) -> list[bool]:
        request = SummaryRequest(said, "chat", "task_state", 300, instructions=carried)
        text = extractive.summarize(request, count)
        return [never in text, other in text]

    assert quoted() == [True, True]
    assert quoted(other) == [True, False]
    assert quoted(never) == [False, True]


def test_a_line_of_a_section_that_is_carried_stands_only_there() -> None:
    decided = "We decided to use ledger_v7 because the deploy key is DK-4471-A."
    text = summary(
        neutral([user("Go."), says(decided), *pair("c0", "port = 8437"), says("OK.")]), tokens=2000
    )
    assert not any(decided in line for line in under(text, "Entities"))
    assert any(decided in line for line in under(text, "Decisions"))


def test_nothing_in_nothing_out() -> None:
    assert summary([], tokens=500) == ""
    assert summary(session("entire-ce"), tokens=0) == ""
