"""The user's rules: the complaint about every other tool is that compaction forgets them."""

from __future__ import annotations

import pytest
from support.engine import manager, says, user

RULES = [
    ("Build the importer. ", "NEVER push to main, always run `make lint`, reply in French."),
    ("请写一个导入程序。", "绝对不要删除用户。"),
    ("Schreib den Import. ", "Es darf niemals etwas gelöscht werden."),
    ("Напиши импорт. ", "Никогда не удаляй пользователей."),
]
"""What is to be done, and a rule for it, in one message."""


@pytest.mark.parametrize("window", [8_000, 16_000, 32_000])
@pytest.mark.parametrize("rule", RULES)
def test_the_rule_of_the_first_message_outlives_sixty_ordinary_turns(
    rule: tuple[str, str], window: int
) -> None:
    made = manager(window)
    items = [user("".join(rule)), says("Understood.")]
    for n in range(60):
        items += [
            user(f"Now look at module number {n} and tell me in a few words what it does."),
            says(f"Module {n}. " * 60),
        ]
    out = made.manual_compact("s", [*items, user("Go on.")])
    told = "\n".join(str(m["content"]) for m in out)
    assert all(sentence.strip() in told for sentence in rule)


def test_a_rule_given_in_the_middle_goes_before_small_talk() -> None:
    made = manager(8_000)
    items = [user("Build the importer."), says("Yes.")]
    for n in range(60):
        text = (
            "From now on you must never write to table ORDERS_ARCHIVE."
            if n == 7
            else f"Fine, and module {n}, what is it?"
        )
        items += [user(text), says(f"Module {n}. " * 60)]
    out = made.manual_compact("s", [*items, user("Go on.")])
    assert "must never write to table ORDERS_ARCHIVE" in "\n".join(str(m["content"]) for m in out)


def test_nothing_is_cut_while_all_of_it_fits() -> None:
    long = "Open these ports and no others: " + ", ".join(str(9_000 + 7 * n) for n in range(90)) + "."
    made = manager(64_000)
    items = [user(long)] + [says("Working. " * 400) for _ in range(30)]
    out = made.manual_compact(
        "s", [*items, user("a"), says("b"), *(m for n in range(8) for m in (user(f"q{n}"), says("r")))]
    )
    assert long in "\n".join(str(m["content"]) for m in out)


def test_what_a_program_wrote_in_the_users_name_comes_after_what_the_user_wrote() -> None:
    made = manager(8_000)
    frame = "<local-command-caveat>Caveat: these lines must never be answered. {}</local-command-caveat>"
    items = [
        user(frame.format("first " * 300)),
        user("Build the importer for the ORDERS feed."),
        says("Yes."),
    ]
    for n in range(20):
        items += [user(frame.format(f"number {n} " * 150)), says(f"Module {n}. " * 60)]
    out = made.manual_compact("s", [*items, user("Go on.")])
    assert "Build the importer for the ORDERS feed." in "\n".join(str(m["content"]) for m in out)
