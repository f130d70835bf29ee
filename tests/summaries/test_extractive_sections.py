"""Each kind of fact, found in a real session and printed under its heading. Without its extractor the test fails."""

from __future__ import annotations

import json
import re

import pytest
from support.engine import pair, says, user
from support.summaries import count, neutral, session, summary, under

from compact.messages import Message
from compact.messages.cues import SMALL_TALK
from compact.messages.message import text_hash
from compact.summaries import extractive
from compact.summaries.extracting.decisions import is_decision
from compact.summaries.extracting.extractors import EXTRACTORS
from compact.summaries.extracting.session_reading import read
from compact.summaries.request import SummaryRequest
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
        "entire-d6",
        "task_state",
        "Decisions",
        "Decided: I put the constants in the `agent` package rather than in each sub-package (claudecode/geminicli) because",
    ),
    "findings": (
        "entire-ce",
        "task_state",
        "Findings",
        "The key insight was that `ACCESSIBLE=1` makes huh read from stdin (the pty) instead of opening `/dev/tty` directly. [m90]",
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


UNSAID = ("no reason given", "no inputs", "no outcome yet")


def test_every_extractor_has_its_fact() -> None:
    assert FACTS.keys() == EXTRACTORS.keys() | {"details"}


@pytest.mark.parametrize("extractor", FACTS)
def test_the_fact_stands_under_its_heading(extractor: str) -> None:
    name, strategy, heading, fact = FACTS[extractor]
    lines = under(summary(session(name), strategy, 6000), heading)
    assert any(fact in line for line in lines), lines


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_without_its_extractor_the_fact_is_missing(extractor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, strategy, heading, fact = FACTS[extractor]
    monkeypatch.setitem(EXTRACTORS, extractor, lambda reading: [])
    lines = under(summary(session(name), strategy, 6000), heading)
    assert not any(fact in line for line in lines)


@pytest.mark.parametrize("strategy", ["task_state", "decision_log", "code_delta", "brief"])
def test_it_leads_with_the_next_step(strategy: str) -> None:
    """Field failure: plan, compact, plan again, 217 times."""
    text = summary(session("entire-ce"), strategy, 600)
    assert text.splitlines()[:2] == ["## Next step", "- Want me to commit this? [m90]"]


@pytest.mark.parametrize("name", ["openhands", "entire-ce", "entire-d6", "tau-gem2"])
def test_the_ledger_has_its_form_and_is_in_the_order_of_time(name: str) -> None:
    """Every line has four parts that say something, and at least half of what a decision rests on and led to is given."""
    messages = session(name)
    lines = under(summary(messages, "decision_log", 9000), "Decisions")
    assert len(lines) > 5
    steps, given = [], 0
    for line in lines:
        found = re.fullmatch(r"- \[m(\d+)\] (\S.*) :: (\S.*) :: (\S.*) :: (\S.*)", line)
        assert found, line
        parts = found.groups()[1:]
        assert all(re.search(r"\w{2}", part) for part in parts), f"a part says nothing: {line}"
        assert not any(SMALL_TALK.fullmatch(part) for part in parts), line
        given += sum(part not in UNSAID for part in parts[1:])
        steps.append(int(found[1]))
        message = messages[steps[-1] - 1]
        assert message.calls or is_decision_in(message), f"neither decided nor done: {line}"
    assert steps == sorted(steps)
    assert given >= 2 * len(lines)


def is_decision_in(message: Message) -> bool:
    return any(is_decision(said) for said in read([message], [1]).said)


@pytest.mark.parametrize(
    ("said", "decision", "reason"),
    [
        ("I decided to use Postgres because we need transactions.", "I decided to use Postgres", "because we need transactions."),
        ("Since Redis is already there, I'll use Redis.", "I'll use Redis.", "Since Redis is already there"),
        ("We chose the old parser so that files still open.", "We chose the old parser", "so that files still open."),
        ("Going with tabs rather than spaces.", "Going with tabs rather than spaces.", "no reason given"),
        ("Because the API is rate limited, we'll batch the requests.", "we'll batch the requests.", "Because the API is rate limited"),
        ("I'll keep the queue in memory: since it is small, nothing is lost.", "I'll keep the queue in memory", "since it is small, nothing is lost."),
        ("Decision: one binary for both systems, due to the size limit.", "Decision: one binary for both systems", "due to the size limit."),
        ("Let's go with uv. That's because pip resolves too slowly.", "Let's go with uv.", "That's because pip resolves too slowly."),
        ("Instead of a new table, I'll add a column.", "Instead of a new table, I'll add a column.", "no reason given"),
        ("Ich habe mich für Redis entschieden, weil es schneller ist.", "Ich habe mich für Redis entschieden", "weil es schneller ist."),
        ("J'ai choisi FastAPI plutôt que Flask parce que tout est asynchrone.", "J'ai choisi FastAPI plutôt que Flask", "parce que tout est asynchrone."),
        ("Hemos decidido usar Kafka porque pierde menos.", "Hemos decidido usar Kafka", "porque pierde menos."),
        ("Ho scelto Rust perché è più veloce.", "Ho scelto Rust", "perché è più veloce."),
        ("Мы решили взять Redis, потому что он быстрее.", "Мы решили взять Redis", "потому что он быстрее."),
        ("我们决定采用 Redis，因为它更快。", "我们决定采用 Redis", "因为它更快。"),
        ("Since CSV loses the types, I decided to use Parquet.", "I decided to use Parquet.", "Since CSV loses the types"),
        ("Given that CSV loses the 12,000 types, I picked Parquet.", "I picked Parquet.", "Given that CSV loses the 12,000 types"),
        ("I'm going with Parquet, as CSV loses the types.", "I'm going with Parquet", "as CSV loses the types."),
        ("I'm going with Parquet, as usual.", "I'm going with Parquet, as usual.", "no reason given"),
        ("I decided on Parquet: CSV loses the types.", "I decided on Parquet", "CSV loses the types."),
        ("I decided on two steps: export, then a check.", "I decided on two steps: export, then a check.", "no reason given"),
        ("Decision: Parquet. Reason: CSV loses the types.", "Decision: Parquet.", "Reason: CSV loses the types."),
        ("CSV では型が失われるため、Parquet に決めました。", "Parquet に決めました。", "CSV では型が失われるため"),
        ("Redis を採用することにしました。速いためです。", "Redis を採用することにしました。", "速いためです。"),
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
    assert line == f'- [m2] {decision} :: {reason} :: user said: "Which one do we take?" :: no outcome yet'


@pytest.mark.parametrize(
    "said",
    [
        "Sounds good!",
        "Great question!",
        "Let me check.",
        "I'd rather not.",
        "I'd rather not touch that file.",
        "Let's go for a walk, I decided I love this bug, haha.",
        "Good question. Let me look at that.",
        "The parser reads tokens rather than lines.",
        "It uses a queue instead of a stack because the order matters.",
        "We have not decided yet.",
        "You can choose between the Visa card and the gift card.",
        "We could use Redis instead of Postgres.",
        "Let me know whichever you decide.",
        "I'll look at the handler first because it is short.",
        "Shall I use tabs instead of spaces?",
        "Gute Frage, alles klar.",
        "D'accord, bien sûr.",
        "好的，明白了。",
    ],
)
@pytest.mark.parametrize("strategy", ["decision_log", "task_state", "brief"])
def test_talk_is_no_decision(said: str, strategy: str) -> None:
    text = summary(neutral([user("Well?"), says(said), user("Hm."), says("Ready.")]), strategy, 600)
    assert not under(text, "Deci"), text


def test_what_a_tool_does_instead_is_no_decision_of_a_real_session() -> None:
    """A description with `instead of` in it used to stand as decided."""
    lines = under(summary(session("entire-ce"), tokens=1500), "Decisions")
    assert not any("makes huh read from stdin" in line for line in lines)


def test_a_decision_leads_to_the_next_call_of_its_turn_and_to_no_later_one() -> None:
    call = pair("c1", "restarted", name="restart", arguments='{"host": "worker-3"}')
    said = says("I decided to restart it because it holds every connection.")
    (first, _) = under(summary(neutral([user("Help."), said, *call]), "decision_log", 600), "Decisions")
    assert first.endswith(' :: user said: "Help." :: restart host=worker-3 -> "restarted"')
    (first, _) = under(
        summary(neutral([user("Help."), said, user("Go."), *call]), "decision_log", 600), "Decisions"
    )
    assert first.endswith(' :: user said: "Help." :: no outcome yet')


@pytest.mark.parametrize(
    "agrees", ["ok, go on", "haha ok. go on", "continue", "Yes.", "ja, weiter", "continúa"]
)
def test_a_person_who_only_agrees_does_not_keep_a_decision_from_its_outcome(agrees: str) -> None:
    call = pair("c1", "restarted", name="restart", arguments='{"host": "worker-3"}')
    said = says("I decided to restart it because it holds every connection.")
    for answer, led_to in (
        (agrees, 'restart host=worker-3 -> "restarted"'),
        ("ok. stop it", "no outcome yet"),
    ):
        items = neutral([user("Help."), said, user(answer), *call])
        first = under(summary(items, "decision_log", 600), "Decisions")[0]
        assert first.endswith(f" :: {led_to}"), first


def test_a_decision_with_a_limit_in_its_reason_is_no_constraint() -> None:
    said = "Because the vendor API allows only 5 calls a second, we chose a token bucket with rate 5."
    text = summary(
        neutral([user("Go."), says(said), user("Fine."), says("Deploys must stay manual.")]), tokens=600
    )
    assert under(text, "Decisions") == [f"- Decided: {said} [m2]"]
    assert under(text, "Constraints") == ["- Deploys must stay manual. [m4]"]


REPORT = """Here is where we stand.
In progress: the parser rewrite.
Blocked: no access to the staging registry.
Next step: write the migration for orders.
TODO: update the changelog.
"""
REPORT_UNDER_HEADINGS = """## In progress
- the parser rewrite

## Blocked
- no access to the staging registry

## Next steps
1. write the migration for orders
2. update the changelog
"""
REPORT_IN_GERMAN = (
    "In Arbeit: the parser rewrite.\nBlockiert: no access to the staging registry.\n"
    "Nächste Schritte: write the migration for orders.\nOffen: update the changelog."
)


@pytest.mark.parametrize("report", [REPORT, REPORT_UNDER_HEADINGS, REPORT_IN_GERMAN])
def test_what_is_labelled_stands_in_its_section(report: str) -> None:
    text = summary(
        neutral([user("How far are we?"), says(report), user("OK."), says("Sounds good!")]), tokens=900
    )
    assert [line.rpartition(" [")[0].rstrip(".") for line in under(text, "Next step")][:2] == [
        "- write the migration for orders",
        "- update the changelog",
    ]
    assert "- Blocked: no access to the staging registry" in under(text, "Outstanding")[0]
    assert any("In progress: the parser rewrite" in line for line in under(text, "Current state"))
    log = summary(neutral([user("How far are we?"), says(report)]), "decision_log", tokens=900)
    assert "write the migration for orders" in under(log, "Next step")[0]
    assert "Blocked: no access to the staging registry" in under(log, "Outstanding")[0]


@pytest.mark.parametrize(
    "later",
    ["Access to the staging registry arrived, that is resolved.", "Blocked: nothing.", "## Blocked\n- none"],
)
def test_what_blocked_is_gone_once_it_is_said_to_be_over(later: str) -> None:
    said = [says("Blocked: no access to the staging registry."), user("Try again."), says(later)]
    assert not under(summary(neutral([user("Go."), *said]), tokens=600), "Outstanding")


def test_an_outcome_outlives_its_result() -> None:
    """The result went into the archive. Its pointer's lines tell how the command ended, or else the agent's words do."""
    pointer = "[compact: the output is in /tool_outputs/bash_c1.txt, 900 tokens"
    shown = f"{pointer}; its lines:]\n@7 test_a.py::test_x FAILED\n@9 KeyError: 'K'\n@12 1 failed, 30 passed"
    call = json.dumps({"command": "pytest -q"})
    check = json.dumps({"command": "mypy src"})
    items = [
        user("Go."),
        *pair("c1", shown, name="bash", arguments=call),
        *pair("c2", f"{pointer}]", name="bash", arguments=check),
        says("mypy passes on all 40 files."),
    ]
    hashes = frozenset({text_hash(shown), text_hash(f"{pointer}]")})
    request = SummaryRequest(neutral(items), "chat", "task_state", 600, pointers=hashes)
    text = extractive.summarize(request, count)
    assert any("test_x FAILED" in line for line in under(text, "Outstanding"))
    assert "- bash `pytest -q` -> failed [m2]" in under(text, "Progress")
    assert "- bash `mypy src` -> mypy passes on all 40 files. (in /tool_outputs/bash_c1.txt) [m4]" in under(
        text, "Progress"
    )


def test_a_tools_line_stands_once_among_the_facts() -> None:
    call = json.dumps({"command": "pytest -q"})
    failed = pair("c1", "FAILED tests/test_a.py::test_x", name="bash", arguments=call)
    items = [user("Go."), *failed, says("Again."), *[{**item} for item in failed], says("Hm, the same.")]
    items[4]["tool_calls"][0]["id"] = items[5]["tool_call_id"] = "c2"
    for strategy in ("task_state", "code_delta", "brief"):
        text = summary(neutral(items), strategy, 900)
        facts = text.partition("## Entities")[0].partition("## Facts")[0]
        assert facts.count("tests/test_a.py::test_x") == 1, text


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


def test_reports_of_how_things_stand_are_neither_goals_nor_next_steps() -> None:
    text = ""
    for n in range(1, 13):
        seen = pair(f"c{n}", "ok", name="bash", arguments=json.dumps({"command": f"read {n}"}))
        items = [
            user("Go on." if text else "Tidy the controller."),
            *seen,
            says(f"Sensor {n} reads {n + 20} degrees."),
        ]
        text = summary(neutral(items), tokens=900, previous=text, previous_step=n - 1)
        assert not under(text, "Goals"), text
        assert not under(text, "Next step"), text
        assert any(f"Sensor {n} reads" in line for line in under(text, "Current state")), text


def test_a_labelled_next_step_stands_alone_beside_reports() -> None:
    items = [
        user("Go."),
        says("Next step: ask the curator."),
        user("OK."),
        says("Page 18 is empty."),
        says("Page 19 is too."),
    ]
    assert under(summary(neutral(items), tokens=600), "Next step") == ["- ask the curator. [m2]"]


@pytest.mark.parametrize(
    "said",
    [
        "Blocked: waiting for Oleg's API key for the vendor sandbox.",
        "The root cause of the task queue's delay is a lock.",
        "Do you want the whole tree tidied, or only this part?",
    ],
)
def test_what_has_its_own_place_is_no_goal(said: str) -> None:
    assert not under(summary(neutral([user("Go."), says(said), user("Hm.")]), tokens=600), "Goals")


def test_how_the_agent_takes_up_the_task_is_a_goal_and_what_it_says_after_a_call_is_none() -> None:
    first = "You would like the totals right to the cent, whatever the currency."
    call = pair("c1", "ok", name="bash", arguments='{"command": "ls"}')
    items = [
        user("Fix the totals."),
        says(first),
        *call,
        says("The listing came back without a word on totals."),
    ]
    assert under(summary(neutral(items), tokens=600), "Goals") == [f"- {first} [m2]"]
    assert not under(summary(neutral([items[0], *items[2:]]), tokens=600), "Goals")
    later = summary(
        neutral(items),
        tokens=600,
        previous="## Progress: files changed and commands run\n- Read a.py",
        previous_step=1,
    )
    assert not under(later, "Goals")


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
