"""The measure of what a session needed later."""

from __future__ import annotations

from collections.abc import Sequence

from compact.messages.dialects import get
from compact.tools.replay.retention import (
    IDENTIFIER,
    IdentifierIndex,
    Needed,
    Spoken,
    is_kept,
    spoken,
)


def needed(before: list[Spoken], after: list[Spoken], recent: Sequence[str] = ()) -> tuple[Needed, ...]:
    return IdentifierIndex([*before, *after]).needed(len(before), recent)


def said(role: str, text: str) -> Spoken:
    return Spoken(role, text)


LINE = "the function compute_tax in src/billing/tax.py rounds before it adds the shipping"


def test_identifiers_are_what_a_program_would_have_to_spell_right() -> None:
    text = "see src/app/main.py and parseConfig, MAX_RETRIES=3, PROJ-1234, 250ms, a1b2c3d4e5, the HttpServer"
    names = set(IDENTIFIER.findall(text))
    assert {
        "src/app/main.py",
        "parseConfig",
        "MAX_RETRIES",
        "PROJ-1234",
        "250ms",
        "a1b2c3d4e5",
        "HttpServer",
    } <= names
    assert not IDENTIFIER.findall("plain words, a number 42 and nothing else")


def test_needed_is_what_the_agent_writes_before_anything_shows_it_again() -> None:
    before = [said("tool", LINE)]
    assert [one.name for one in needed(before, [said("assistant", "I change compute_tax now")])] == [
        "compute_tax"
    ]
    shown_first = [said("tool", "compute_tax stands here"), said("assistant", "I change compute_tax now")]
    assert needed(before, shown_first) == ()
    assert needed(before, [said("user", "what about compute_tax?")]) == ()
    assert needed(before, [said("assistant", "I write brand_new_name")]) == ()
    assert needed(before, [said("assistant", "I change compute_tax now")], recent=["compute_tax"]) == ()


def test_a_name_that_stood_without_words_around_it_gives_no_meaning_to_keep() -> None:
    assert needed([said("tool", "compute_tax")], [said("assistant", "compute_tax it is")]) == ()


def test_kept_means_with_its_meaning_not_only_its_name() -> None:
    (one,) = needed([said("tool", LINE)], [said("assistant", "compute_tax")])
    assert is_kept(one, f"Summary. {LINE}. More.")
    assert not is_kept(one, "names: compute_tax, other_name, third_name")
    words = sorted(LINE.split())
    assert not is_kept(one, " ".join(words)), "the words in another order say something else"
    assert not is_kept(one, "nothing of it")


def test_an_index_answers_every_cut_as_a_new_one_does() -> None:
    talk = [
        said(("tool", "assistant")[n % 2], f"{LINE} number {n} and name_{n % 5} again here")
        for n in range(20)
    ]
    index = IdentifierIndex(talk)
    for cut in (3, 7, 7, 15, 2):
        assert index.needed(cut) == needed(talk[:cut], talk[cut:])


def test_a_message_is_spoken_with_its_results_and_the_arguments_of_its_calls() -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path": "a/b.py", "n": 2}'},
    }
    asked = get("chat").read({"role": "assistant", "content": "Reading.", "tool_calls": [call]})
    assert spoken(asked) == Spoken("assistant", "Reading.\nread path: a/b.py\nread n: 2")
    answer = get("chat").read({"role": "tool", "tool_call_id": "c", "content": "text"})
    assert spoken(answer).text == "text"


def test_needed_remembers_the_lines() -> None:
    (one,) = needed([said("tool", LINE)], [said("assistant", "now I rename compute_tax to something better")])
    assert one == Needed("compute_tax", (LINE,))
