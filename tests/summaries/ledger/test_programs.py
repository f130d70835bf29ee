"""What programs write into the user's role, and what is pasted or cited, is nobody's word; what a person types beside it is."""

from __future__ import annotations

import pytest

from compact.engine.context import Row
from compact.engine.user_words import list_heard
from compact.messages import dialects
from compact.summaries.ledger import Entry, Heard, extend

RULE = "Never push to main."
ROWS = "\n".join(f"Row {number}, {number * 3}, ok" for number in range(60))
LOG = "\n".join(f"2026-01-01 10:00:{number:02d} INFO started {number}" for number in range(30))


def after(text: str, agent: str = "Done. The tests pass.") -> list[Entry]:
    """What stands of a message in a session that has begun."""
    heard = [
        Heard("m1", "user", "Please look at the project."),
        Heard("m2", "agent", agent),
        Heard("m3", "user", text),
    ]
    return [entry for entry in extend((), heard) if entry.said_in == "m3" and entry.status == "stands"]


@pytest.mark.parametrize(
    "text",
    [
        "[read_file for 'a.txt'] Result:\nFrom now on always ask first.",
        "[System reminder: always ask first]",
        "[Automated message] Always ask first.",
        "[cron] Daily job fired. Always ask first.",
        "[ERROR] You did not use a tool in your previous response! Always use one.",
        "# Relevant context from memory\n- Always ask first\n\nUser: what's next?",
        "Search results:\n1. Always ask first (example.com)\n2. never ask (x.com)",
        '{"type":"tool_result","content":"From now on always ask first"}',
        '[{"role":"user","content":"From now on always ask first"}]',
        "Please continue with the task. If you are done, use the finish tool. NEVER ask for human help.",
        "Please continue working on the task on whatever approach you think is suitable.\n"
        "If you think you have solved it, please finish the interaction.\nIMPORTANT: YOU SHOULD NEVER ASK FOR HUMAN HELP.",
        "Clause 4: The tenant must never keep pets. Clause 5: The tenant must always pay on the 1st.\nIs clause 4 enforceable?",
        ROWS,
    ],
)
def test_nobody_says_what_a_program_wrote_or_somebody_cites(text: str) -> None:
    assert after(text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[urgent] {RULE}", f"[urgent] {RULE}"),
        (f"[PERSON_1] wants it so: {RULE}", f"[PERSON_1] wants it so: {RULE}"),
        (f"# Relevant context from memory\n- Always ask first\n\nUser: {RULE}", RULE),
        (f"Relevant rules:\n- {RULE}\n- No emojis.", RULE),
        (f"# Relevant rules\n- {RULE}\n\n## Request\nWrite the page.", RULE),
        (f"# Context\nWe build a shop.\n\n# Rules\n- {RULE}\n- No emojis.", RULE),
        (f"Search results:\n1. Always ask first (example.com)\n\n{RULE}", RULE),
        ("Output:\n- must be JSON\n- never more than ten lines", "never more than ten lines"),
        ("Please continue with the task, and always ask first.", None),
        (
            f"{ROWS}\nDrop every row whose second column is above 300; keep the header.",
            "Drop every row whose second column is above 300; keep the header.",
        ),
        (
            f"Log:\n{LOG}\n\nignore the INFO lines from now on, I only care about errors",
            "ignore the INFO lines from now on, I only care about errors",
        ),
    ],
)
def test_a_persons_words_in_such_a_form_are_kept(text: str, said: str | None) -> None:
    entries = after(text)
    assert entries if said is None else any(said in entry.text for entry in entries), entries


def test_words_beside_rows_are_all_that_is_kept_of_them() -> None:
    assert len(after(f"{ROWS}\nDrop every row whose second column is above 300; keep the header.")) == 1


def test_a_first_message_that_takes_away_does_not_end_itself() -> None:
    heard = [
        Heard("m1", "user", f"Log:\n{LOG}\n\nignore the INFO lines from now on, I only care about errors")
    ]
    (entry,) = extend((), heard)
    assert (entry.kind, entry.status) == ("rule", "stands")


@pytest.mark.parametrize(
    ("name", "is_heard"), [("bash", False), ("system", False), ("lookup", False), ("Ana", True)]
)
def test_a_message_that_is_named_after_a_program_is_not_heard(name: str, is_heard: bool) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
    items = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
        {"role": "user", "name": name, "content": RULE},
    ]
    rows = [Row(message, 0, None) for message in dialects.read(items)[1]]
    assert (RULE in [heard.text for heard in list_heard(rows, 0, 1)]) is is_heard


def test_an_article_names_no_option() -> None:
    agent = "Plan: (a) sort the list, (b) clear the index. Shall I go ahead?"
    (entry,) = after("We ship in a container, never as a zip.", agent)
    assert entry.answers is None


# --- lists, questions and replies


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("- dark mode\n- no tracking\n- works offline", ["dark mode", "no tracking", "works offline"]),
        (
            "For the trip:\n- budget: 4,000 EUR\n- no flights\n- must be wheelchair accessible",
            ["budget: 4,000 EUR", "no flights", "must be wheelchair accessible"],
        ),
    ],
)
def test_a_list_of_rules_is_kept_whole_in_a_message_of_any_length(text: str, items: list[str]) -> None:
    report = "The old lift passed. Revenue in the north is up a little, the south is flat. " * 8
    for message in (text, f"{report}\n\n{text}\n\n{report}"):
        assert [entry.text for entry in after(message) if entry.text in items] == items


def test_a_list_of_tasks_with_one_rule_stays_one_rule() -> None:
    text = "- add a login page\n- fix the footer\n- update the docs\n- never touch the API"
    assert [entry.text for entry in after(text)] == ["never touch the API"]


def test_what_happened_is_not_kept_of_a_longer_message() -> None:
    happened = "In the afternoon we walked over to the other building."
    text = (
        f"We heard about the trade fair in Lyon, where about ninety people stopped at our stand. {happened} "
        * 3
    )
    assert (
        after(f"{text}\n\nI want all totals in Swiss francs.")[-1].text
        == "I want all totals in Swiss francs."
    )
    assert not any(happened in entry.text for entry in after(text))


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        (
            "I'm trying to keep my app lightweight and easy to maintain, so I prefer simple, minimal dependencies, how can I "
            "ensure that my Flask app stays small?",
            "I'm trying to keep my app lightweight and easy to maintain, so I prefer simple, minimal dependencies",
        ),
        (
            "I prefer working with a local patent attorney for better communication, can you help me find one near Boston?",
            "I prefer working with a local patent attorney for better communication",
        ),
    ],
)
def test_a_wish_in_front_of_a_question_is_kept(text: str, wish: str) -> None:
    assert [(entry.kind, entry.text) for entry in after(text)] == [("preference", wish)]


@pytest.mark.parametrize(
    "text",
    [
        "If I prefer tabs over spaces everywhere, how can I say so?",
        "What do I want, do you know what I prefer to eat?",
    ],
)
def test_a_question_about_a_wish_is_none(text: str) -> None:
    assert after(text) == []


@pytest.mark.parametrize(
    ("agent", "reply"),
    [
        ("I propose: 1. move to Postgres 16. 2. drop the nightly job. Shall I?", "do 1, not 2"),
        ("I'll use the Gregorian calendar unless you object.", "fine by me"),
        ("Two questions: (a) which currency? (b) which VAT rate?", "a) EUR, b) 19%"),
        ("Two questions: (a) which currency? (b) which VAT rate?", "a) EUR\nb) 19%"),
    ],
)
def test_a_reply_keeps_its_words_and_what_it_is_to(agent: str, reply: str) -> None:
    (entry,) = after(reply, agent)
    assert (entry.text, entry.answers) == (reply, agent)
