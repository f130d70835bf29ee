"""Every requirement and key scenario of the stability harness PRD, by its name."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.harness import independent_count, message, output, system, task

from compact.errors import ConfigError, MessageError
from compact.harness import HarnessConfig, stabilize
from compact.tools.harness.scenarios import SCENARIOS


def named(report: Any, name: str) -> dict[str, Any]:
    (found,) = [check for check in report["checks"] if check["name"] == name]
    return dict(found)


def test_fr1_session_ingestion_takes_artifacts_of_every_kind_in_every_form() -> None:
    """A list, an object with a list, `type` for `kind`, unknown kinds, messages of a dialect."""
    artifacts = [system(), {"type": "message", "content": "hi"}, {"kind": "note", "content": "aside"}]
    bare, wrapped = stabilize(artifacts), stabilize({"artifacts": artifacts})
    assert bare.report == wrapped.report
    assert [line["kind"] for line in bare.report["kept"]] == ["system", "message", "note"]
    chat = [{"role": "system", "content": "Obey."}, {"role": "user", "content": "hi"}]
    assert [line["kind"] for line in stabilize(chat).report["kept"]] == ["system", "message"]


def test_fr1_a_message_with_words_calls_and_results_becomes_an_artifact_for_each() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
    chat = [
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": "Looking.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a.py"},
    ]
    found = stabilize(chat, HarnessConfig(pii="none")).artifacts
    assert [(one["kind"], one["content"]) for one in found] == [
        ("message", "list"),
        ("message", "Looking."),
        ("tool_call", 'ls {"path": "."}'),
        ("tool_output", "a.py"),
    ]


def test_fr2_pii_masking_takes_three_or_more_digits_out_of_everything_but_system_and_task() -> None:
    given = [
        system("Be 100% sure."),
        task("Room 101."),
        message("I am 1234567 and 42"),
        output("code 999", title="t 555"),
    ]
    done = stabilize(given)
    assert [one["content"] for one in done.artifacts[2:]] == ["I am <REDACTED> and 42", "code <REDACTED>"]
    assert done.artifacts[3]["title"] == "t <REDACTED>"
    assert done.report["masked"] == 3
    assert done.artifacts[0] is given[0], "an artifact without a hit is the very same object"
    assert given[2]["content"] == "I am 1234567 and 42", "what was given is not changed"


@pytest.mark.parametrize("keep", [0, 1, 2, 3, 50])
def test_fr3_heuristic_truncation_keeps_system_task_and_the_newest_messages(keep: int) -> None:
    talk = [message("word " * 100, id=f"talk-{n}") for n in range(10)]
    done = stabilize([system(), *talk, task()], HarnessConfig(budget=60, keep_messages=keep))
    kept = [line["id"] for line in done.report["kept"]]
    assert kept == ["system-0", "task-11", *(f"talk-{n}" for n in range(max(0, 10 - keep), 10))]


def test_fr3_the_rest_is_taken_newest_first_while_it_fits() -> None:
    talk = [message(f"word {n} " + "x " * 20, id=str(n)) for n in range(10)]
    done = stabilize(talk, HarnessConfig(budget=110, pii="none"))
    kept = [line["id"] for line in done.report["kept"]]
    assert kept == ["6", "7", "8", "9"]
    assert [line["id"] for line in done.report["dropped"]] == ["0", "1", "2", "3", "4", "5"]


def test_fr3_one_that_does_not_fit_does_not_stop_older_ones_that_do() -> None:
    given = [output("small", id="old"), output("x " * 500, id="big"), message("now"), message("go")]
    done = stabilize(given, HarnessConfig(budget=100))
    assert [line["id"] for line in done.report["dropped"]] == ["big"]
    assert done.report["dropped"][0]["reason"] == "it needs 503 tokens, 91 were left"


def test_fr3_a_higher_priority_is_kept_first() -> None:
    given = [output("x " * 40, id=str(n), priority=5 if n == 1 else 0) for n in range(4)]
    done = stabilize(given, HarnessConfig(budget=60))
    assert [line["id"] for line in done.report["kept"]] == ["1"]


def test_fr4_token_budget_enforcement_holds_by_an_independent_count() -> None:
    talk = [message("Das ist so. " * n) for n in range(60)]
    for budget in (20, 100, 777, 5_000):
        done = stabilize([system(), task(), *talk], HarnessConfig(budget=budget, keep_messages=0))
        assert done.report["tokens"] == independent_count(done.artifacts) <= budget
        assert named(done.report, "budget")["passed"]


def test_fr4_what_must_stay_and_does_not_fit_stays_and_fails_the_check() -> None:
    done = stabilize([system("word " * 300, id="constitution"), message("hi")], HarnessConfig(budget=50))
    check = named(done.report, "budget")
    assert not check["passed"]
    assert "more than the budget of 50" in check["details"][0]
    assert "constitution (system) takes 303" in check["details"][1]
    assert len(done.artifacts) == 2
    assert not done.report["dropped"]


def test_fr5_deterministic_ordering_is_system_task_then_time() -> None:
    given = [message("1st"), task("t1"), output("o"), system("s1"), message("2nd"), system("s2"), task("t2")]
    done = stabilize(given, HarnessConfig(pii="none"))
    assert [one["content"] for one in done.artifacts] == ["s1", "s2", "t1", "t2", "1st", "o", "2nd"]


def test_fr6_validation_suite_pii_check_names_the_artifact_that_fails() -> None:
    given = [system("Call 555-0100 for help.", id="boss"), task("Room 101", id="job"), message("hi")]
    check = named(stabilize(given).report, "pii")
    assert not check["passed"]
    assert [detail.split(" ")[0] for detail in check["details"]] == ["boss", "job"]
    assert "0100" not in json.dumps(check), "the report does not repeat it"
    half = stabilize(given, HarnessConfig(pii_allow=["system"])).report
    assert [detail.split(" ")[0] for detail in named(half, "pii")["details"]] == ["job"]
    assert stabilize(given, HarnessConfig(pii_allow="system, task")).report["passed"]


def test_fr6_validation_suite_order_check_finds_a_heuristic_that_loses_the_system_prompt() -> None:
    def careless(entries: Any, config: Any) -> Any:
        from compact.tools.harness.heuristics import newest_first

        return [choice for choice in newest_first(entries, config) if choice.entry.kind != "system"]

    report = stabilize([system(), message("hi")], HarnessConfig(heuristic=careless)).report
    assert named(report, "order")["details"] == ["system-0 (system) was pushed out of the context"]
    assert not report["passed"]


def test_fr7_reporting_has_exactly_the_documented_keys() -> None:
    given = [system(authority="operator"), message("call 12345"), output("x " * 900, id="log")]
    report = json.loads(json.dumps(stabilize(given, HarnessConfig(budget=100)).report))
    assert list(report) == ["passed", "tokens", "budget", "checks", "kept", "dropped", "masked"]
    assert [list(check) for check in report["checks"]] == [["name", "passed", "details"]] * 3
    assert [check["name"] for check in report["checks"]] == ["pii", "budget", "order"]
    (dropped,) = report["dropped"]
    assert list(dropped) == ["id", "kind", "tokens", "reason"]
    assert (dropped["id"], dropped["kind"], dropped["tokens"]) == ("log", "tool_output", 903)
    assert report["kept"][0]["authority"] == "operator"
    assert report["kept"][1]["masked"] == report["masked"] == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": 0}, "budget must be a whole number of tokens > 0, got 0"),
        ({"budget": -5}, "budget must be"),
        ({"budget": 1.5}, "budget must be"),
        ({"keep_messages": -1}, "keep_messages must be a whole number >= 0, got -1"),
        ({"pii": "phone"}, "there is no masking rule 'phone'. Known: digits, none, standard"),
        (
            {"heuristic": "best"},
            "there is no truncation heuristic 'best'. Known: conversation_first, newest_first",
        ),
        ({"checks": ["taste"]}, "there is no check 'taste'. Known: budget, order, pii"),
        ({"checks": 5}, "checks must be a list of names, got 5"),
        ({"pii_allow": {"system": True}}, "pii_allow must be a list of names"),
        ({"pii_allow": ["sytem"]}, "got 'sytem'; did you mean system?"),
        ({"pii_allow": "task, System"}, "its 'kind' is 'System'; write kind 'system'"),
        ({"pii_allow": [5]}, "its 'kind' is int, not text"),
    ],
)
def test_nfr1_configurability_refuses_what_makes_no_sense(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        HarnessConfig(**settings)


@pytest.mark.parametrize(
    "bad", [{"kind": "message"}, {"kind": 3, "content": "x"}, {"kind": "m", "content": 5}]
)
def test_an_entry_that_is_no_artifact_is_named(bad: Any) -> None:
    with pytest.raises(MessageError, match=r"artifacts\[1\] is not an artifact") as caught:
        stabilize([message("fine"), bad])
    assert caught.value.index == 1


def test_nfr2_predictability_the_same_bytes_in_every_process_and_hash_seed(tmp_path: Path) -> None:
    """Reports of all three forms, written by processes with different hash seeds."""
    file = tmp_path / "talk.jsonl"
    lines = [
        system("S"),
        task("T"),
        *(message(f"{'abc'[n % 3]} {n * 7919}", priority=n % 4) for n in range(200)),
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    seen = set()
    for seed in ("0", "4242"):
        outs = [tmp_path / f"{seed}.{ending}" for ending in ("json", "md", "html")]
        reports = [word for out in outs for word in ("--report", str(out))]
        subprocess.run(
            [sys.executable, "-m", "compact", "harness", str(file), "--budget", "300", *reports],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        seen.add(tuple(out.read_bytes() for out in outs))
    assert len(seen) == 1


def test_nfr3_extensibility_rules_heuristics_and_checks_are_replaced_by_name_and_by_callable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from compact.harness import register_check, register_heuristic, register_rule
    from compact.tools.harness.config import CHECKS, HEURISTICS, RULES
    from compact.tools.harness.heuristics import newest_first

    for registry in (RULES, HEURISTICS, CHECKS):
        monkeypatch.setattr(registry, "parts", dict(registry.parts))
    register_rule("employee", lambda text: re.subn(r"EMP-\w+", "<EMPLOYEE>", text))
    register_heuristic(
        "no_tools",
        lambda entries, config: newest_first([e for e in entries if e.kind != "tool_output"], config),
    )
    register_check(
        "polite", lambda context: [] if "please" in str(context.artifacts) else ["nobody said please"]
    )
    given = [message("please ask EMP-A7"), output("log")]
    settings = HarnessConfig(pii="employee", heuristic="no_tools", checks=["pii", "polite"])
    done = stabilize(given, settings)
    assert [one["content"] for one in done.artifacts] == ["please ask <EMPLOYEE>"]
    assert [check["name"] for check in done.report["checks"]] == ["pii", "polite"]
    assert done.report["passed"]
    assert not stabilize([message("do it")], settings).report["passed"]

    def shout(context: Any) -> list[str]:
        return ["always"]

    assert stabilize(given, HarnessConfig(checks=[shout])).report["checks"] == [
        {"name": "shout", "passed": False, "details": ["always"]}
    ]


def test_nfr3_an_installed_package_offers_parts_by_entry_point(tmp_path: Path) -> None:
    """A distribution as pip would lay it out; found by name without being imported by anybody."""
    (tmp_path / "their_rules.py").write_text(
        "def shout(text):\n    return text.upper(), int(text != text.upper())\n"
    )
    info = tmp_path / "their_rules-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-rules\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[compact.harness.rules]\nshout = their_rules:shout\n")
    code = (
        "from compact.harness import HarnessConfig, stabilize;"
        "print(stabilize([{'kind': 'message', 'content': 'hi'}], HarnessConfig(pii='shout')).artifacts[0]['content'])"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "HI\n"


@pytest.mark.parametrize("name", SCENARIOS)
def test_key_scenario(name: str) -> None:
    held = dict(SCENARIOS[name]())
    assert len(held) == 4
    assert all(held.values()), held


def crowded_out(report: Any, given: list[Any]) -> list[str]:
    """The dropped messages that would fit if every output of the same or a lower priority were dropped."""
    by_id = {one["id"]: one for one in given}

    def is_talk(name: str) -> bool:
        return bool(by_id[name]["kind"] == "message")

    found = []
    for line in report["dropped"]:
        priority = by_id[line["id"]].get("priority", 0)
        firm = sum(
            kept["tokens"]
            for kept in report["kept"]
            if is_talk(kept["id"])
            or by_id[kept["id"]]["kind"] in ("system", "task")
            or by_id[kept["id"]].get("priority", 0) > priority
        )
        if is_talk(line["id"]) and firm + line["tokens"] + 3 <= report["budget"]:
            found.append(line["id"])
    return found


def session_with_outputs(seed: int, share: float, prioritised: bool) -> list[Any]:
    """A session with outputs of about this share of 2,000 tokens, at random places."""
    source = random.Random(seed)
    given: list[Any] = [
        message("word " * source.randint(1, 120), id=f"talk-{n}", role=source.choice(["user", "assistant"]))
        for n in range(source.choice([0, 1, 2, 5, 20, 60]))
    ]
    for n in range(source.choice([1, 1, 2, 8])):
        kind = source.choice(["tool_output", "tool_output", "tool_call", "note"])
        one = {"kind": kind, "content": "x " * max(1, int(2_000 * share)), "id": f"log-{n}"}
        given.insert(source.randint(0, len(given)), one)
    if prioritised:
        given = [{**one, "priority": source.choice([-3, 0, 0, 1, 2.5])} for one in given]
    return [system(id="s"), task(id="t"), *given]


@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.5, 3.0])
def test_scenario_3_no_message_makes_room_for_an_output(share: float, prioritised: bool) -> None:
    """Whatever the output's size, place and number: only a higher priority lets it take the room of a message."""
    for seed in range(12):
        given = session_with_outputs(seed, share, prioritised)
        done = stabilize(given, HarnessConfig(budget=2_000))
        assert crowded_out(done.report, given) == [], (seed, share)
        assert named(done.report, "budget")["passed"] == (done.report["tokens"] <= 2_000)


def test_scenario_3_the_sweep_would_find_messages_that_were_crowded_out() -> None:
    """The newest-first order gives a long output the room of messages, and is there for whoever asks for it."""
    talk = [message("word " * 60, id=f"m{n}") for n in range(20)]
    given = [*talk[:18], output("x " * 1_500, id="log"), *talk[18:]]
    newest = stabilize(given, HarnessConfig(budget=2_000, heuristic="newest_first"))
    assert "log" in {line["id"] for line in newest.report["kept"]}
    assert len(crowded_out(newest.report, given)) > 5
    assert [line["id"] for line in stabilize(given, HarnessConfig(budget=2_000)).report["dropped"]] == ["log"]


def test_scenario_3_a_tools_words_in_a_message_are_an_output() -> None:
    talk = [message("word " * 60, id=f"m{n}") for n in range(20)]
    loud = message("x " * 1_500, id="log", role="tool")
    done = stabilize([*talk[:10], loud, *talk[10:]], HarnessConfig(budget=2_000))
    assert [line["id"] for line in done.report["dropped"]] == ["log"]
