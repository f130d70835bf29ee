"""What may stand for history: good summaries of real sessions pass, bad ones never do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support_llm import bad_summaries, good_summaries, messages_of, sections, source_of

from compact.claims import Source, ids_in, numbers_in, paths_in
from compact.messages import Message, Text
from compact.summarizers.chunks import conversation
from compact.tokens import Meter
from compact.verification import Expected, Verdict, missing_sections, verify, without_reasoning

COUNT = Meter("gpt-4o").count_text


def judged(text: str, entry: dict[str, Any], **more: Any) -> Verdict:
    expected = Expected(
        source=source_of(entry),
        limit=more.pop("limit", 600),
        count=COUNT,
        sections=sections(entry["strategy"]) if "strategy" in entry else tuple(entry["sections"]),
        **more,
    )
    return verify(text, expected)


def test_good_summaries_pass() -> None:
    """Written by hand, of eleven real sessions, in different words and forms: at least 90% pass, as they are."""
    verdicts = [judged(entry["text"], entry) for entry in good_summaries()]
    assert len(verdicts) >= 30
    passed = [verdict for verdict in verdicts if verdict.defect is None]
    untouched = [verdict for verdict in passed if not verdict.struck]
    assert len(passed) >= 0.9 * len(verdicts), [v.why for v in verdicts if v.defect]
    assert len(untouched) >= 0.9 * len(verdicts), [v.struck for v in passed]


@pytest.mark.parametrize(
    "entry", bad_summaries(), ids=lambda entry: f"{entry['defect']}-{entry['text'][:20]!r}"
)
def test_a_bad_summary_never_passes(entry: dict[str, Any]) -> None:
    assert judged(entry["text"], entry).defect == entry["defect"]


def test_the_input_handed_back_never_passes() -> None:
    for entry in good_summaries():
        text = conversation(messages_of(entry))
        for part in (text, text[: len(text) // 2], text[len(text) // 3 :]):
            verdict = judged(part, {**entry, "sections": []}, limit=1_000_000)
            assert verdict.defect in ("echo", "loop"), verdict


def test_a_changed_name_is_noticed() -> None:
    """Every path, id and number of the good summaries, changed a little: the sentence is struck or all is rejected."""
    caught = tried = 0
    for entry in good_summaries():
        text = entry["text"]
        for name in [*paths_in(text), *ids_in(text), *numbers_in(text)]:
            wrong = re.sub(r"\d", lambda digit: str((int(digit.group()) + 3) % 10), name)
            if wrong == name:
                stem, dot, ending = name.rpartition(".")
                wrong = f"{stem or name}_other{dot}{ending if stem else ''}"
            verdict = judged(text.replace(name, wrong), entry)
            tried += 1
            caught += verdict.defect is not None or any(wrong in sentence for sentence in verdict.struck)
    assert tried > 100
    assert caught >= 0.97 * tried, f"{caught} of {tried}"


def test_a_summary_over_its_limit_or_cut_off_there_never_passes() -> None:
    for entry in good_summaries():
        expected = Expected(
            source=source_of(entry),
            limit=COUNT(entry["text"]),
            count=COUNT,
            sections=sections(entry["strategy"]) if "strategy" in entry else tuple(entry["sections"]),
        )
        assert verify(entry["text"], expected).defect is None
        assert verify(entry["text"], expected, cut_off=True).defect == "too_long"
        assert verify(f"{entry['text']} And so on, as before.", expected).defect == "too_long"


def test_only_the_sentence_that_invents_is_struck() -> None:
    entry = next(entry for entry in good_summaries() if entry["strategy"] == "task_state")
    text = f"{entry['text']}\nThe agent also changed lib/shipping/rates.py. The tone was friendly."
    verdict = judged(text, entry)
    assert verdict.defect is None
    assert verdict.struck == ("The agent also changed lib/shipping/rates.py.",)
    assert "The tone was friendly." in verdict.text
    assert "rates.py" not in verdict.text


@pytest.mark.parametrize(
    ("said", "invented"),
    [
        ("see src/app/main.py:12", []),
        ("see ./src/app/main.py", []),
        ("see /home/me/project/src/app/main.py", []),
        ("see src/app/other.py", ["src/app/other.py"]),
        ("see `util.py`", []),
        ("see `utils.py`", ["utils.py"]),
        ("read/write and try/except", []),
        ("about 12 files, 3 of 7 tests", []),
        ("12,345 rows", []),
        ("12,346 rows", ["12346"]),
        ("exit code 7", ["7"]),
        ("exit code 3", []),
        ("a score of 0.8534", []),
        ("a score of 0.8541", ["0.8541"]),
        ("commit 3fbcf56", []),
        ("commit 3fbcf57", ["3fbcf57"]),
        ("ticket ABC-123 in UTF-8 with SHA-256", []),
        ("ticket ABC-124", ["ABC-124"]),
        ("https://example.com/a/b?x", []),
        ("https://example.com/a/c", ["example.com/a/c"]),
        ("all of src/**/*.py and {a,b}.py", []),
        ("a 1000-line file, 5000ms", ["1000", "5000"]),
        ("Node.js and Next.js", []),
    ],
)
def test_what_counts_as_invented(said: str, invented: list[str]) -> None:
    source = Source(
        [
            "cd /home/me/project; opened src/app/main.py and util.py; 12345 rows; exit code 3; score 0.85342",
            "commit 3fbcf56aa0b13e1c; see ABC-123; https://example.com/a/b?x",
        ]
    )
    assert source.invented_in(said) == invented


def test_text_escaped_inside_json_counts_as_said() -> None:
    source = Source(['{"command": "cat <<EOF\\nsetup.cfg\\nEOF", "path": "C:\\\\work\\\\app.py"}'])
    assert source.invented_in("setup.cfg was shown, and C:\\work\\app.py") == []


@pytest.mark.parametrize(
    "said",
    [
        "Error handling was added in 3 files: all pass.",
        "Rate limiting was added to the API, and the timeout is 30 seconds.",
        "Timeouts are handled now. Connection errors are retried.",
        "The conversation was about tests that run against the staging server.",
        "I can't reproduce the bug yet, so I read the log next.",
        "Sorry state of the build: two tests fail.",
        "System: the agent works on Linux. You are now on branch main.",
        "The model was asked to assist with the tests; it cannot be reached at night.",
    ],
)
def test_a_summary_about_errors_is_no_error(said: str) -> None:
    expected = Expected(source=Source(["3 files, 30 seconds"]), limit=100, count=COUNT, sections=())
    verdict = verify(said, expected)
    assert (verdict.defect, verdict.struck) == (None, ())


def test_thinking_in_front_of_an_answer_is_taken_off() -> None:
    assert without_reasoning("<think>hm</think>\n## Goals\nx") == "## Goals\nx"
    assert without_reasoning("<think>hm, never ends") == ""


@pytest.mark.parametrize(
    "heading",
    ["## Goals", "### 1. Goals and success criteria", "**Goals**", "**Goals:**", "Goals:", "# GOAL"],
)
def test_a_heading_is_known_in_any_form(heading: str) -> None:
    assert missing_sections(f"{heading}\nto win", ("Goals",)) == []
    assert missing_sections("to win the goals", ("Goals",)) == ["Goals"]


def test_the_previous_summary_word_for_word_is_no_new_one() -> None:
    entry = good_summaries()[0]
    assert judged(entry["text"], entry, previous=entry["text"]).defect == "unchanged"


def test_a_summary_may_repeat_the_one_before_it() -> None:
    """Bringing a summary up to date keeps most of its words; that is no echo."""
    entry = good_summaries()[8]
    source = Source.of([*messages_of(entry), Message("assistant", (Text(entry["text"]),))])
    expected = Expected(
        source=source,
        limit=600,
        count=COUNT,
        sections=sections(entry["strategy"]) if "strategy" in entry else tuple(entry["sections"]),
        previous=entry["text"],
    )
    assert verify(f"{entry['text']}\nThe agent goes on.", expected).defect is None
