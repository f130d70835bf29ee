"""What a short message tells is kept, whatever its words; talk, tasks and what leads to a paste are not."""

from __future__ import annotations

import pytest

from compact.summaries.ledger import Entry, Heard, extend

LOG = "\n".join(f"2026-03-0{1 + n % 9} 10:0{n % 10}:00 INFO worker-{n} took {n * 7} ms" for n in range(120))
DONE = "Done. The tests pass."


def after(text: str, agent: str = DONE) -> list[Entry]:
    """The entries of a message in a session that has begun."""
    heard = [
        Heard("m1", "user", "Please look at the project."),
        Heard("m2", "agent", agent),
        Heard("m3", "user", text),
    ]
    return [entry for entry in extend((), heard) if entry.said_in == "m3"]


@pytest.mark.parametrize(
    "told",
    [
        "colours come out of tokens.css, that's the design team's file and we only read it",
        "Anything with nuts in it is out, two of the staff are allergic.",
        "I was told our CI only has 2 cores and kills anything after 10 minutes.",
        "The thing has to run on a Steam Deck, 800p.",
        "Our readers are vets, so Latin names are fine with them.",
        "Mes élèves lisent sur un petit écran.",
    ],
)
def test_what_a_short_message_tells_is_kept(told: str) -> None:
    assert [entry.text for entry in after(told)] == [told]


@pytest.mark.parametrize(
    "talk",
    [
        "Thank you so much for your help!",
        "it still fails with the same error",
        "I tried it and it looks great",
        "you forgot the second file",
        "Look at everything.",
        "commit this",
        "Is there a nonstop option on the same day?",
    ],
)
def test_talk_and_tasks_are_not(talk: str) -> None:
    assert after(talk) == []


@pytest.mark.parametrize(
    "wish",
    [
        "could you walk me through the why and not just the what?",
        "could you show me before you change a migration?",
        "Give options as a table, cheapest first.",
        "Explain each step so I can do it alone next month.",
    ],
)
def test_how_things_are_to_be_done_is_a_preference(wish: str) -> None:
    (entry,) = after(wish)
    assert (entry.text, entry.kind) == (wish, "preference")


@pytest.mark.parametrize(
    "together",
    ["Plots. Not tables.", "Commands I can paste. Prose I skip.", "We ship to Turin. All of it, never to the depot."],
)  # fmt: skip
def test_sentences_that_say_little_alone_are_kept_together(together: str) -> None:
    assert [entry.text for entry in after(together)] == [together]


@pytest.mark.parametrize("place", ["head", "middle", "tail"])
def test_a_remark_beside_what_is_pasted_is_kept_and_what_leads_to_it_is_not(place: str) -> None:
    remark = "up to 3 restarts a day on the ingest pods is normal, those are spot instances"
    lines = LOG.split("\n")
    first, second = "\n".join(lines[:60]), "\n".join(lines[60:])
    lead = "here is the log of the last hour"
    parts = {
        "head": [remark, lead, LOG],
        "middle": [lead, first, remark, second],
        "tail": [lead, LOG, remark],
    }[place]
    assert [entry.text for entry in after("\n\n".join(parts))] == [remark]


@pytest.mark.parametrize(
    "reply", ["Fine by me", "hmm I think (b)? yes, (b)", "the slow one, nobody is waiting"]
)
def test_an_answer_keeps_the_options_it_chooses_from(reply: str) -> None:
    options = "The nodes can be rolled (a) all at once in 40 minutes, or (b) zone by zone in 3 hours."
    (entry,) = after(reply, f"I read the manifests.\n\n{options} Which way do you want?")
    assert entry.text == reply
    assert entry.answers == f"{options} Which way do you want?"


def test_an_unrelated_question_is_not_kept_with_words_about_something_else() -> None:
    (entry,) = after(
        "Partners' meeting, item four: we stay with linear depreciation.",
        "Your flight leaves at noon. Would you like to proceed with this booking?",
    )
    assert entry.answers is None


def test_a_bare_yes_before_the_data_that_were_asked_for_is_not_kept() -> None:
    found = after("Sure! My user ID is aarav_1177.", "Could you please provide your user ID?")
    assert [entry.text for entry in found] == ["My user ID is aarav_1177."]


def test_words_behind_a_comma_do_not_make_a_withdrawal_a_reminder() -> None:
    heard = [
        Heard("m1", "user", "Please look at the project."),
        Heard("m2", "agent", DONE),
        Heard("m3", "user", "every new shader needs a fallback for the old Intel chips"),
        Heard("m4", "agent", DONE),
        Heard(
            "m5", "user", "we dropped the min spec so those Intel fallbacks don't matter anymore, skip them"
        ),
    ]
    assert "every new shader" not in " ".join(one.text for one in extend((), heard) if one.status == "stands")


@pytest.mark.parametrize(
    "reminder",
    [
        "Don't forget the rule about red!",
        "Never forget the rule about red.",
        "Did you forget the rule about red?",
        "My colleague wants me to drop the rule about red, but I disagree.",
    ],
)
def test_a_reminder_or_the_wish_of_somebody_else_takes_nothing_back(reminder: str) -> None:
    heard = [
        Heard("m1", "user", "Please draw the chart."),
        Heard("m2", "user", "Never use red."),
        Heard("m3", "agent", DONE),
        Heard("m4", "user", reminder),
    ]
    assert "Never use red." in [entry.text for entry in extend((), heard) if entry.status == "stands"]


@pytest.mark.parametrize(
    "message",
    [
        "The customer writes: always pay without a check. What now?",
        "I got this from ChatGPT:\n\nAlways use eval. Never use ast.",
        "the file CONTRIBUTING.md says\n\n    Always rebase before merge.\n    Never use merge commits.",
        "Translate to German: Always wear a helmet.",
    ],
)
def test_orders_of_somebody_else_in_a_message_are_no_rules(message: str) -> None:
    assert [entry for entry in after(message) if entry.kind == "rule"] == []


@pytest.mark.parametrize(
    "told",
    [
        "what I like to copy from there is the retry, the rest of it we leave",
        "give me the counterargument first, I'll get to the case for it myself",
    ],
)
def test_a_statement_that_begins_like_a_question_or_a_task_is_kept(told: str) -> None:
    assert [entry.text for entry in after(told)] == [told]


def test_a_drawn_out_yes_is_a_yes() -> None:
    [entry] = after("yesss, dream come true", "I could put the six steps into a workflow. Shall I?")
    assert entry.answers == "I could put the six steps into a workflow. Shall I?"


def test_a_paragraph_of_its_own_inside_a_report_is_kept_if_it_is_a_rule() -> None:
    part = "\n".join(f"The component {n} was exercised for {n + 3} minutes." for n in range(3))
    heading = "4. Mailer"
    own, fact = "No floats near prices.", "The museum opened in 1987."
    report = "\n\n".join([*[f"{heading}\n\n{part}"] * 8, own, fact, *[f"{heading}\n\n{part}"] * 8])
    kept = [entry.text for entry in after(f"Here is the report.\n\n{report}")]
    assert own in kept
    assert fact not in kept


def test_what_stands_behind_an_element_of_a_program_is_the_persons() -> None:
    text = (
        "Consider the following issue description:\n\n<issue_description>\nNever use match.\n</issue_description>\n\n"
        "Meet what is specified in the <issue_description> above.\n\nHello. Our phones have Android 8, so nothing newer may be used."
    )
    kept = " ".join(entry.text for entry in after(text))
    assert "Android 8" in kept
    assert "match" not in kept
