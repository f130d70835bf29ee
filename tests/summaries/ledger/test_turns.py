"""What later words do to earlier ones, by the ways in which people say it."""

from __future__ import annotations

import pytest

from compact.summaries.ledger import Entry, Heard, extend
from compact.summaries.ledger.topics import stem


def said(*texts: str) -> tuple[Entry, ...]:
    """The entries of a conversation in which the agent works between what a person says."""
    heard = [Heard("m1", "user", "Have a look at what is there."), Heard("m2", "agent", "I see it.")]
    for n, text in enumerate(texts):
        place = 6 * (n + 1)
        heard += [Heard(f"m{place}", "user", text), Heard(f"m{place + 3}", "agent", "Understood.")]
    return extend((), heard)


def standing(*texts: str) -> list[tuple[str, str | None]]:
    """What stands of these texts, with what is in its brackets."""
    return [(entry.text, entry.was) for entry in said(*texts)[1:] if entry.status == "stands"]


# --- withdrawals

SURE = [
    ("Use only recycled paper for print orders.", "forget the recycled paper requirement"),
    ("Keep a table of all open questions.", "you can skip the table of open questions"),
    ("Rows with a zero amount are left out.", "cancel what I said about zero amounts"),
    ("Don't use the new printer.", "the printer ban is lifted"),
    ("Keine Zusammenfassung weglassen.", "die Zusammenfassung kannst du weglassen"),
    ("La regla del logo: siempre arriba.", "quita la regla del logo"),
    ("Każdy raport ma streszczenie.", "streszczenie raportów nie jest już potrzebne"),
    ("每份报告都要附摘要。", "报告的摘要不需要了。"),
]


@pytest.mark.parametrize(("old", "new"), SURE)
def test_what_is_taken_back_stands_no_more(old: str, new: str) -> None:
    assert old not in [text for text, _ in standing(old, new)]


def test_what_is_perhaps_taken_back_goes_behind_the_words_that_do() -> None:
    old, new = "Ставь логотип на каждую страницу.", "забудь про логотип"
    assert standing(old, new) == [(new, old)]


def test_an_order_to_delete_a_thing_takes_no_words_back() -> None:
    rule = "Never delete the cache."
    assert (rule, None) in standing(rule, "Delete the cache rule from nginx.conf.")


def test_what_stands_in_brackets_is_taken_back_alone() -> None:
    linter, plots = "Run the linter on each save.", "Save the plots as PNG."
    entries = said(linter, plots, "please stop running the linter on each save")
    stands = [(entry.text, entry.was) for entry in entries if entry.status == "stands"]
    assert (plots, None) in stands
    assert linter not in [text for text, _ in stands]


def test_a_withdrawal_that_says_what_holds_instead_is_kept() -> None:
    later = "scrap that limit of 80, make it 100"
    assert later in [text for text, _ in standing("Lines are at most 80 characters.", later)]


# --- changes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Usa il tema scuro.", "ho cambiato idea, tema chiaro"),
        ("Usa o MySQL.", "em vez do MySQL vamos usar Postgres"),
        ("Verwende MySQL als Datenbank.", "vergiss, was ich zu MySQL gesagt habe, wir nehmen Postgres"),
        ("Please call me Mr. Hollander.", "you can call me Piet"),
        ("Maximaal 10 foto's per pagina.", "doe maar 20 foto's per pagina"),
        ("Screenshots go into docs/img.", "change of plan: screenshots belong in assets/shots"),
        ("Book only window seats.", "aisle seats from now on, my knee needs the room"),
    ],
)
def test_a_change_without_the_words_of_a_rule_ends_what_it_changes(old: str, new: str) -> None:
    (shown,) = standing(old, new)
    assert shown in [(new, None), (new, old)]


def test_a_bare_day_in_words_about_something_else_changes_nothing() -> None:
    meetings = "our meetings are weekly now, still on Tuesdays"
    assert (meetings, None) in standing(meetings, "demo got moved, now Friday at 14")


# --- words


@pytest.mark.parametrize(
    "forms",
    [
        "joke jokes",
        "row rows",
        "run running",
        "log logs logging",
        "save saved saving",
        "ask asking asked",
        "pay paid payment",
        "query queries",
        "raporlar raporlardaki",
        "özet özete",
    ],
)
def test_the_forms_of_a_short_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_to_commit_is_not_to_comment() -> None:
    assert stem("commits") == stem("committing") != stem("comments")


def test_endings_of_turkish_verbs_forbid_nothing_in_other_languages() -> None:
    (entry,) = [one for one in said("El tema y la forma van en la misma firma.") if "tema" in one.text]
    assert entry.kind == "fact"
    (rule,) = [one for one in said("Bu klasöre dokunma.") if "dokunma" in one.text]
    assert rule.kind == "rule"


# --- what is pasted, and what is answered


@pytest.mark.parametrize(
    "announced", ["Minutes of the review, for context:", "Here's what they wrote in the report:"]
)
def test_a_remark_behind_announced_minutes_is_the_persons(announced: str) -> None:
    minutes = "\n".join(f"- Ines looked at item {n} and at its numbers." for n in range(20))
    rule = "tickets without an owner always go to Deniz"
    texts = [entry.text for entry in said(f"{announced}\n\n{minutes}\n\n{rule}")]
    assert rule in texts


def test_a_mail_that_is_announced_goes_on_to_its_end() -> None:
    mail = "Here is the mail:\n\nHi all,\n\nthe new certificate is there.\n\nAlways sign with it from now on."
    assert not [entry for entry in said(mail) if "sign" in entry.text]


def test_a_reply_agrees_to_the_proposal_in_a_line_of_its_own_behind_a_question() -> None:
    proposal = "I propose that we rename the column to net_amount and keep a view with the old name."
    heard = [
        Heard("m1", "user", "Have a look at what is there."),
        Heard("m2", "agent", f"Should I go on with the tests, or stop here?\n\n{proposal}"),
        Heard("m3", "user", "sounds good"),
    ]
    assert extend((), heard)[-1].answers == proposal


def test_a_question_in_a_line_of_its_own_is_asked_alone() -> None:
    question = "Which cloth should the cover have, linen or cotton?"
    heard = [
        Heard("m1", "user", "Have a look at what is there."),
        Heard("m2", "agent", f"Would you like to pay by card?\n\n{question}"),
        Heard("m3", "user", "linen"),
    ]
    assert extend((), heard)[-1].answers == question
