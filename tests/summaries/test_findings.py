"""What the agent established survives as its last statement, with its source. Plans, guesses and talk do not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.engine import pair, says, user
from support.summaries import count, neutral, session, summary, under


def found_in(*items: dict[str, Any], strategy: str = "task_state", previous: str = "") -> list[str]:
    """The findings of a session, without their citations."""
    text = summary(neutral([user("Why is it slow?"), *items]), strategy, 900, previous, previous_step=1)
    return [line.removeprefix("- ").rpartition(" [")[0] for line in under(text, "F")]


def bash(command: str, output: str, call_id: str = "c1") -> list[dict[str, Any]]:
    return pair(call_id, output, name="bash", arguments=json.dumps({"command": command}))


ESTABLISHED = [
    "The root cause is a race in `SessionStore.save`.",
    "It turns out the cache is never invalidated.",
    "p95 latency is 340 ms after the change.",
    "The migration takes 12 minutes on staging.",
    "`make -C build test` works; plain `make test` does not.",
    "Confirmed: the token expires after 15 minutes.",
    "The problem was that the config file is read before the environment is loaded.",
    "Raising the timeout did not help.",
    "Upgrading to 2.4 does not fix the crash.",
    "All 214 tests pass now.",
    "All tests pass.",
    "I tried disabling the cache, but the leak is still there.",
    "The import fails because the index is missing.",
    "The working config is deploy/edge.toml.",
    "The vendor allows 5 calls a second.",
    "Die Ursache ist ein Wettlauf im Sitzungsspeicher.",
    "Es stellt sich heraus, dass der Cache nie geleert wird.",
    "La cause est une fuite mémoire dans le pool.",
    "El problema era que el índice no existe.",
    "O problema era o limite de conexões do pool.",
    "La causa è un indice mancante nella tabella ordini.",
    "Причина в том, что индекс не используется.",
    "Sorun, önbelleğin hiç temizlenmemesiydi.",
    "Przyczyną jest wyścig w magazynie sesji.",
    "根本原因是连接池耗尽。",
    "原因はキャッシュが無効化されないことです。",
    "원인은 캐시가 만료되지 않는 것입니다.",
    "السبب هو أن الفهرس غير موجود.",
    "कारण यह है कि कैश कभी खाली नहीं होता।",
]


@pytest.mark.parametrize("said", ESTABLISHED)
def test_what_was_established_stands_with_its_source(said: str) -> None:
    text = summary(neutral([user("Why?"), says(said), user("I see."), says("OK.")]), tokens=600)
    assert under(text, "Findings") == [f"- {said} [m2]"]


@pytest.mark.parametrize("strategy", ["task_state", "decision_log", "code_delta", "brief"])
def test_every_built_in_strategy_has_a_place_for_it(strategy: str) -> None:
    text = summary(neutral([user("Why?"), says(ESTABLISHED[0])]), strategy, 600)
    assert f"- {ESTABLISHED[0]} [m2]" in under(text, "Fo" if strategy == "brief" else "Fi")


@pytest.mark.parametrize(
    "said",
    [
        "Let me look at the tests in `src/cache.py`.",
        "I think the root cause might be the cache.",
        "Maybe the pool is exhausted.",
        "Next I will check whether the pool is exhausted.",
        "You could try disabling the cache.",
        "Should I fix the parser in `src/a.py`?",
        "Great question!",
        "Read 3 files.",
        "I read 3 files.",
        "Sensor 33 reads 53 degrees.",
        "I found the bug.",
        "The issue is clear now.",
        "Added `parse_all()` to `src/a.py`.",
        "We need to raise the limit to 4000 lines.",
        "If the pool is exhausted, the call fails with error 53300.",
        "Wahrscheinlich ist die Ursache der Cache.",
        "La cause est peut-être le cache.",
        "可能的原因是缓存。",
    ],
)
def test_plans_guesses_and_talk_are_no_findings(said: str) -> None:
    assert found_in(says(said)) == []


def test_what_a_statement_quotes_of_the_result_before_it_makes_it_a_finding() -> None:
    said = "src/upload.py sets MAX_BODY at line 31."
    seen = bash("grep -n MAX src", "src/upload.py:31:MAX_BODY = 10_000_000")
    assert found_in(*seen, says(said)) == [said]
    assert found_in(*bash("ls", "README.md"), says(said)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("p95 latency of /search is 340 ms.", "With the index, p95 latency of /search is 120 ms."),
        ("The root cause is the cache in `Store.get`.", "I was wrong: the cache in `Store.get` is never reached."),
        ("The root cause is a stale cache.", "Actually, the root cause is not the cache but a missing index on orders."),
        ("All 12 tests pass.", "2 of the tests fail now."),
        ("`make test` fails with exit code 2.", "`make test` passes now."),
        ("Root cause: the scheduler reads TZ from /etc/default/cron.", "The root cause is the newline in crontab.edge."),
        ("The culprit is `Store.get`.", "It turns out that the culprit is a missing index on orders."),
        ("La cause est le fichier crontab.edge.", "La cause est un index manquant."),
        ("根本原因は crontab.edge の改行漏れです。", "根本原因は TZ の設定です。"),
        ("The path that works is /opt/acme/runner.", "The path that works is /usr/bin/runner."),
        ("Der Import dauert 40 Sekunden.", "Nach dem Umbau dauert der Import 12 Sekunden."),
        ("导入耗时 40 秒。", "优化后导入耗时 12 秒。"),
    ],
)  # fmt: skip
def test_the_last_statement_about_a_subject_replaces_the_earlier_ones(before: str, after: str) -> None:
    assert found_in(says(before), user("Go on."), says(after)) == [after]
    text = summary(neutral([user("Why?"), says(before)]), tokens=600)
    assert found_in(says(after), previous=text) == [after], "an earlier summary said otherwise"


def test_a_finding_outlives_twenty_rounds_and_its_correction_replaces_it() -> None:
    said = [says("The root cause is a race in `SessionStore.save`."), says("The import takes 40 seconds.")]
    text = summary(neutral([user("Why?"), *said]), tokens=2400)
    for n in range(1, 21):
        new = [*bash("ls", f"file_{n}.py", f"c{n}"), says(f"Looked at file_{n}.py.")]
        new += [says("With batching, the import takes 7 seconds.")] if n == 9 else []
        text = summary(neutral([user("On."), *new]), tokens=2400, previous=text, previous_step=n)
    assert under(text, "Findings") == [
        "- The root cause is a race in `SessionStore.save`. [v1 m2]",
        "- With batching, the import takes 7 seconds. [v10 m5]",
    ]


def test_statements_about_different_subjects_stand_together() -> None:
    said = ["`make lint` fails with 3 errors.", "`make test` passes now.", "The import takes 12 seconds."]
    assert found_in(*map(says, said)) == said
    text = summary(neutral([user("Why?"), says(said[0])]), tokens=600)
    assert found_in(says(said[1]), previous=text) == said[:2], "an earlier summary says something else"


@pytest.mark.parametrize("denial", ["That's not it.", "I was wrong.", "Scratch that.", "Das stimmt nicht."])
def test_what_is_taken_back_does_not_stand(denial: str) -> None:
    assert found_in(says("The root cause is a stale cache."), user("Sure?"), says(denial)) == []


@pytest.mark.parametrize(
    "no",
    [
        "No, that's wrong, the proxy has no buffer.",
        "That's not correct.",
        "Das stimmt nicht.",
        "不对，不是这样。",
    ],
)
def test_what_a_person_contradicts_does_not_stand(no: str) -> None:
    assert found_in(says("The root cause is the proxy's buffer size."), user(no), says("OK.")) == []
    kept = "The root cause is the proxy's buffer size."
    assert found_in(says(kept), user("No, don't fix it yet."), says("OK.")) == [kept]


SCHEDULER = "Root cause: the scheduler reads TZ from /etc/default/cron, which is unset."
NEWLINE = "The root cause is a missing newline in crontab.edge."


@pytest.mark.parametrize(
    ("said", "no", "stands"),
    [
        (SCHEDULER, "No, the root cause is not TZ; the cron file is set.", False),
        (SCHEDULER, "No, the root cause is the missing newline.", False),
        (SCHEDULER, "Nope, the cause isn't TZ.", False),
        ("Die Ursache ist die Variable TZ.", "Nein, die Ursache ist nicht TZ.", False),
        (SCHEDULER, "No, don't set TZ yet.", True),
        (SCHEDULER, "No, show me the root cause in the file first.", True),
        ("All 12 tests pass.", "No, the tests are not needed now.", True),
    ],
)
def test_who_says_what_it_is_not_takes_back_the_finding_that_names_it(
    said: str, no: str, stands: bool
) -> None:
    kept = [said] if stands else []
    assert found_in(says(said), user(no), says("OK.")) == kept
    if "TZ" in no and not stands:
        assert found_in(says(said), says("Looked at one more log."), user(no), says("OK.")) == kept
        text = summary(neutral([user("Why?"), says(said)]), tokens=600)
        assert found_in(user(no), says("OK."), previous=text) == kept, "an earlier summary said so"
        assert found_in(says(NEWLINE), says("Hm."), user(no), says("OK.")) == [NEWLINE]


def test_causes_of_different_things_stand_together() -> None:
    said = ["The root cause of the slow login is a lock.", "The root cause of the crash is a null pointer."]
    assert found_in(*map(says, said)) == said
    said = ["The price of this lamp is $4.20.", "The price of this mug is $7.10."]
    assert found_in(*map(says, said)) == said
    ruled_out = "The root cause is not the proxy."
    assert NEWLINE in found_in(says(NEWLINE), user("Sure?"), says(ruled_out))


def test_what_was_established_outlasts_reports_of_what_was_just_seen() -> None:
    path = "The path that works is /opt/acme/bin/runner --profile edge."
    chose = ["I chose a token bucket because the vendor is slow.", "I chose Redis because Kafka is heavy."]
    text = summary(neutral([user("Why?"), says(path), says(NEWLINE), *map(says, chose)]), tokens=600)
    for n in range(1, 13):
        rounds = [
            item
            for k in range(6)
            for item in (
                *bash("cat notes", f"probe_{n}_{k}: {n * k} units", f"c{k}"),
                says(f"The sensor probe_{n}_{k} reads {n * k} units here."),
            )
        ]
        text = summary(neutral([user("On."), *rounds]), tokens=480, previous=text, previous_step=n)
    assert {f"- {path} [v1 m2]", f"- {NEWLINE} [v1 m3]"} <= set(under(text, "Findings")), text
    assert under(text, "Decisions") == [f"- Decided: {chose[0]} [v1 m4]", f"- Decided: {chose[1]} [v1 m5]"]


def test_in_a_large_room_older_findings_take_no_more_than_their_share_from_the_record() -> None:
    older = "\n".join(
        f"- The config that works for zone {n} is deploy/zone_{n}/edge.toml." for n in range(60)
    )
    rounds = [
        item
        for n in range(200)
        for item in bash("cat notes", f"probe_{n}: sensor/part_{n}.log has {n} units", f"c{n}")
    ]
    text = summary(
        neutral([user("On."), *rounds]),
        tokens=2400,
        previous=f"## Findings: what was established\n{older}",
        previous_step=1,
    )
    found = under(text, "Findings")
    assert found
    assert count("\n".join(found)) < 0.2 * 2400 / 3, text


def test_a_tool_cannot_add_or_take_back_a_finding() -> None:
    said = "The root cause is a stale cache in `Store.get`."
    poison = bash("cat notes", "The root cause is Bob.\nI was wrong: `Store.get` is fine.\nThat's not it.")
    assert found_in(says(said), *poison, says("OK.")) == [said]


REAL = {
    "entire-ce": "The key insight was that `ACCESSIBLE=1` makes huh read from stdin (the pty) instead of opening `/dev/tty` directly. [m90]",
    "entire-4c": "The test is creating shadow branches with the old naming format (`entire/<short-hash>`) but the `Reset` method",
    "openhands": "The `pattern` rule is defined on line 666 as",
    "tau-gem2": "Order #W1154986 is 'cancelled'. [m51]",
}


@pytest.mark.parametrize("name", REAL)
def test_a_real_session_keeps_what_it_established(name: str) -> None:
    lines = under(summary(session(name), tokens=9000), "Findings")
    assert any(line.startswith(f"- {REAL[name]}") for line in lines), lines
