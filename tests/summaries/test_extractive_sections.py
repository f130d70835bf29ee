"""Each kind of fact, found in a real session and printed under its heading. Without its extractor the test fails."""

from __future__ import annotations

import json
import re

import pytest
from support.engine import pair, says, user
from support.summaries import neutral, session, summary, under

from compact.messages.cues import DECISION
from compact.summaries.extracting.extractors import EXTRACTORS
from compact.summaries.voices import attributed

FACTS = {
    "next_steps": ("entire-ce", "task_state", "Next step", "Want me to commit this? [m90]"),
    "goals": (
        "openhands",
        "task_state",
        "Goals",
        "the `ponyc` compiler segfaults when using a single-element",
    ),
    "constraints": (
        "tau-gem2",
        "task_state",
        "Constraints",
        "Since the order is delivered, I can't cancel it. [m13]",
    ),
    "decisions": (
        "entire-ce",
        "task_state",
        "Decisions",
        "Decided: The `ACCESSIBLE=1` mode makes huh read from stdin",
    ),
    "changes": ("openhands", "code_delta", "Changes", "src/libponyc/ast/parser.c: +12 -10 in 2 edits"),
    "edits": ("openhands", "code_delta", "Diff", "+ SET_FLAG(AST_FLAG_IN_PARENS);"),
    "reads": (
        "entire-ce",
        "task_state",
        "Progress",
        "Read /Users/alex/workspace/cli/cmd/entire/cli/strategy/",
    ),
    "commands": ("entire-ce", "task_state", "Progress", '`mise run lint 2>&1` -> "0 issues." [m86]'),
    "state": ("entire-ce", "task_state", "Current state", "All tests pass and linter is clean. [m90]"),
    "problems": (
        "openhands",
        "task_state",
        "Outstanding",
        'Open: execute_bash `make clean && make` -> "/bin/sh: 1: cd',
    ),
    "ledger": ("openhands", "decision_log", "Decisions", ":: execute_bash `make clean && make` ::"),
    "details": ("tau-gem2", "brief", "Facts", "lucas_brown_6720"),
}


def test_every_extractor_has_its_fact() -> None:
    assert FACTS.keys() == EXTRACTORS.keys() | {"details"}


@pytest.mark.parametrize("extractor", FACTS)
def test_the_fact_stands_under_its_heading(extractor: str) -> None:
    name, strategy, heading, fact = FACTS[extractor]
    lines = under(summary(session(name), strategy, 1500), heading)
    assert any(fact in line for line in lines), lines


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_without_its_extractor_the_fact_is_missing(extractor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, strategy, heading, fact = FACTS[extractor]
    monkeypatch.setitem(EXTRACTORS, extractor, lambda reading: [])
    lines = under(summary(session(name), strategy, 1500), heading)
    assert not any(fact in line for line in lines)


@pytest.mark.parametrize("strategy", ["task_state", "decision_log", "code_delta", "brief"])
def test_it_leads_with_the_next_step(strategy: str) -> None:
    """Field failure: plan, compact, plan again, 217 times."""
    text = summary(session("entire-ce"), strategy, 600)
    assert text.splitlines()[:2] == ["## Next step", "- Want me to commit this? [m90]"]


@pytest.mark.parametrize("name", ["openhands", "entire-ce", "tau-gem2"])
def test_the_ledger_has_its_form_and_is_in_the_order_of_time(name: str) -> None:
    """Every line says what was decided or done, and at least half of what belongs to it; `-` stands for the rest."""
    messages = session(name)
    lines = under(summary(messages, "decision_log", 2000), "Decisions")
    assert len(lines) > 5
    steps, given = [], 0
    for line in lines:
        found = re.fullmatch(r"- \[m(\d+)\] (\S.*) :: (\S.*) :: (\S.*) :: (\S.*)", line)
        assert found, line
        decision, *rest = found.groups()[1:]
        assert re.search(r"\w{3}", decision), line
        assert set(rest) != {"-"}, line
        said = [part for part in rest if part != "-"]
        assert all(re.search(r"\w", part) for part in said), line
        given += len(said)
        steps.append(int(found[1]))
        message = messages[steps[-1] - 1]
        assert message.calls or DECISION.search(message.text), f"neither decided nor done: {line}"
    assert steps == sorted(steps)
    assert given >= 2 * len(lines)


@pytest.mark.parametrize(
    ("said", "decision", "reason"),
    [
        ("I decided to use Postgres because we need transactions.", "I decided to use Postgres", "because we need transactions."),
        ("Since Redis is already there, I'll use Redis.", "I'll use Redis.", "Since Redis is already there"),
        ("We chose the old parser so that files still open.", "We chose the old parser", "so that files still open."),
        ("Going with tabs rather than spaces.", "Going with tabs rather than spaces.", "-"),
    ],
)  # fmt: skip
def test_a_decision_stands_with_the_reason_that_was_given(said: str, decision: str, reason: str) -> None:
    items = [
        user("Which one do we take?"),
        says(said),
        user("Fine."),
        says("Nice weather today."),
        user("Yes."),
    ]
    (line,) = under(summary(neutral(items), "decision_log", 600), "Decisions")
    assert line == f'- [m2] {decision} :: {reason} :: user said: "Which one do we take?" :: -'


def test_a_decision_leads_to_the_next_call_of_its_turn_and_to_no_later_one() -> None:
    call = pair("c1", "restarted", name="restart", arguments='{"host": "worker-3"}')
    said = says("I decided to restart it because it holds every connection.")
    (first, _) = under(summary(neutral([user("Help."), said, *call]), "decision_log", 600), "Decisions")
    assert first.endswith(' :: user said: "Help." :: restart host=worker-3 -> "restarted"')
    (first, _) = under(
        summary(neutral([user("Help."), said, user("Go."), *call]), "decision_log", 600), "Decisions"
    )
    assert first.endswith(' :: user said: "Help." :: -')


def test_every_citation_leads_to_the_message_that_says_it() -> None:
    messages = session("entire-ce")
    lines = under(summary(messages), "Entities")
    assert lines
    for line in lines:
        found = re.fullmatch(r"- (.*) \[m(\d+)\]", line)
        assert found, line
        message = messages[int(found[2]) - 1]
        said = [
            message.text,
            *(call.arguments_text for call in message.calls),
            *(r.text for r in message.results),
        ]
        quoted = attributed(line.removeprefix("- "))
        words = re.findall(r"\w{4,}", " ".join(quoted[1]) if quoted else found[1])
        whole = " ".join(said)
        if message.results:
            assert quoted, "who said it"
        assert sum(word in whole for word in words) >= 0.8 * len(words), line


def test_goals_are_no_intentions_of_the_next_minute() -> None:
    items = [
        user("Fix the totals."),
        says("I'll start by reading the files of the cart. The goal is totals that are right to the cent."),
        says("I need to check the imports of the module first."),
        user("Yes."),
    ]
    lines = under(summary(neutral(items), "task_state", 600), "Goals")
    assert [line.rpartition(" [")[0] for line in lines] == [
        "- The goal is totals that are right to the cent."
    ]


@pytest.mark.parametrize(
    ("command", "result", "is_problem"),
    [
        ("grep -rn raise src", 'src/a.py:7: raise ValueError("failed to open")', False),
        ("cd src && cat a.py | head", "def failed(): ...", False),
        ("git log --oneline", "1a2b3c4 Fix the error in totals", False),
        ("cat gone.py", "cat: gone.py: No such file or directory", True),
        ("grep x a.py; make test", "FAILED tests/test_a.py", True),
        ("pytest -q", "FAILED tests/test_a.py", True),
    ],
)
def test_what_a_command_only_shows_is_no_problem(command: str, result: str, is_problem: bool) -> None:
    items = [
        user("Go."),
        *pair("c1", result, name="bash", arguments=json.dumps({"command": command})),
        says("Seen."),
    ]
    assert bool(under(summary(neutral(items), "task_state", 600), "Outstanding")) is is_problem
