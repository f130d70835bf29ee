"""What each rung of the ladder leaves in the context, and what can be read back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.dialects import CONVERTERS
from support.engine import assert_good, events, manager, of_size, pair, says, summary_of, turns, user

from compact import InsufficientBudget
from compact.checks import violations
from compact.messages.excerpts import fitting_head, fitting_tail, head_and_tail, preview, safe_cut
from compact.testing import ScriptedSummarizer
from compact.tokens import Meter

count = Meter("gpt-4o").count_text


def test_a_large_result_leaves_a_preview_a_path_its_size_and_how_to_read_it() -> None:
    made = manager()
    rows = [f"row {n}: value {n * n}" for n in range(6000)]
    shown = made.process_tool_result("\n".join(rows), "query", "call_1")
    assert all(row in shown for row in rows[:7])
    assert "row 5999" not in shown or "more lines" in shown
    path = next(word for word in shown.split() if word.startswith("/tool_outputs/")).rstrip(":")
    assert f'read_file("{path}")' in shown
    assert "6,000 lines" in shown
    (session,) = made.archive.sessions()
    assert made.archive.read_text(session, path) == "\n".join(rows)
    assert made.process_tool_result("small", "query", "call_2") == "small"


def test_a_megabyte_on_one_line_is_not_its_own_preview() -> None:
    made = manager()
    shown = made.process_tool_result(json.dumps({"rows": list(range(200_000))}), "query", "call_1")
    assert count(shown) < 600


def test_identical_outputs_are_stored_once() -> None:
    made = manager()
    text = "same " * 30_000
    first = made.process_tool_result(text, "query", "call_1")
    second = made.process_tool_result(text, "query", "call_2")
    assert first == second
    (session,) = made.archive.sessions()
    assert len(made.archive.files(session)) == 1


def test_a_huge_result_is_offloaded_when_first_seen_whatever_the_total() -> None:
    """Field failure: one huge result in the protected tail is immune to everything."""
    made = manager()
    items = [user("q"), *pair("c1", "data " * 25_000, name="query")]
    out = made.preflight("s", items)
    assert out[0] is items[0]
    assert count(out[2]["content"]) < 600
    assert "query_c1_" in out[2]["content"]
    assert items[2]["content"].startswith("data data"), "the host's own message is not touched"
    assert made.preflight("s", items) == out


@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "ai_sdk", "gemini", "converse"])
def test_old_results_and_written_contents_become_pointers_in_every_dialect(dialect: str) -> None:
    body = "\n".join(f"line {n} of the file" for n in range(200))
    arguments = json.dumps({"path": "src/a.py", "content": body, "mode": 7})
    chat = [user("Write the file."), *pair("w1", "written", name="write_file", arguments=arguments)]
    for n in range(25):  # with more of them, the oldest would be folded
        chat += pair(f"c{n}", f"output {n}\n" * 120, arguments=f'{{"path": "f{n}.py"}}')
    items = CONVERTERS[dialect]([*chat, says("Done."), user("Thanks, go on.")])
    made = manager(16_000, policy={"target_pct": 0.8})
    out = made.preflight("s", items, dialect=dialect)
    assert violations(out, dialect) == []
    shrunk = [e["properties"] for e in events(made, name="calls_shrunk")]
    assert {"write_file", "read_file"} <= {e["tool_name"] for e in shrunk}
    write = next(e for e in shrunk if e["tool_name"] == "write_file")
    assert made.archive.read_text("s", write["file_path"]) == body
    text = json.dumps(out)
    assert "the content that write_file wrote is in /tool_outputs/" in text
    from compact.messages.dialects import read

    call = next(c for m in read(out, dialect)[1] for c in m.calls if c.name == "write_file")
    assert list(call.parsed_arguments() or {}) == ["path", "content", "mode"], "the same keys, still JSON"
    assert (call.parsed_arguments() or {})["path"] == "src/a.py"


def test_a_message_with_signed_reasoning_is_never_edited() -> None:
    """Field failure: signed reasoning blocks edited, moved or separated are a 400."""
    body = "x " * 3000
    items: list[dict[str, Any]] = [user("go")]
    for n in range(12):
        thinking = {"type": "thinking", "thinking": f"t{n}", "signature": f"sig{n}"}
        write = {
            "type": "tool_use",
            "id": f"t{n}",
            "name": "write_file",
            "input": {"path": "a", "content": body},
        }
        items.append({"role": "assistant", "content": [thinking, write]})
        items.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "ok"}]}
        )
    made = manager(30_000)
    out = made.preflight("s", items)
    assert violations(out, "anthropic") == []
    signed = [m for m in out if any(b.get("type") == "thinking" for b in m["content"] if isinstance(b, dict))]
    assert signed
    assert all(any(m is original for original in items) for m in signed)


def test_repeated_reads_of_the_same_file_keep_the_newest() -> None:
    text = "the content of the file\n" * 200
    items = [user("go")]
    for n in range(8):
        items += pair(f"same{n}", text, arguments='{"path": "same.py"}')
        items += pair(f"other{n}", f"{n} {text}", arguments=f'{{"path": "other{n}.py"}}')
    made = manager(16_000, policy={"keep_tool_io_pairs": 1, "target_pct": 0.6})
    out = made.preflight("s", [*items, says("ok")])
    whole = [
        m["tool_call_id"] for m in out if m["role"] == "tool" and not m["content"].startswith("[compact: ")
    ]
    assert "same7" in whole
    assert not {f"same{n}" for n in range(7)} & set(whole)


def test_a_copied_pointer_raises_a_warning() -> None:
    made = manager(8000)
    arguments = json.dumps(
        {"path": "a.py", "content": "[compact: the content that write_file wrote is in /x]"}
    )
    items = [*turns(30), *pair("w", "written", name="write_file", arguments=arguments), user("next")]
    made.preflight("s", items)
    codes = [e["properties"]["code"] for e in events(made, name="warning")]
    assert "pointer_copied" in codes


def test_recovery_output_is_never_offloaded_again() -> None:
    made = manager(offload={"large_result_tokens": 500})
    path = made.process_tool_result("a b c\n" * 20_000, "bash", "c1", session_id="s").split()[7].rstrip(":")
    text = made.recall_tools("s")["read_file"](path)
    assert made.estimate([user(text)]).total > 1_000
    assert made.process_tool_result(text, "read_file", "c2", session_id="s") == text
    for forged in (text + " ", "[compact recovery] " + "a b " * 20_000):
        assert made.process_tool_result(forged, "read_file", "c3", session_id="s") != forged, (
            "only its own are known"
        )


def test_the_users_rules_are_carried_word_for_word_round_after_round() -> None:
    """Field failure: compaction forgets the rules that the user gave."""
    made = manager(8000)
    rule = "Never push to main, and always write the changelog in German."
    history = [user(rule), says("Understood.")]
    for n in range(120):
        history = list(made.preflight("s", [*history, user(f"Do part {n}."), says(f"Part {n} done. " * 30)]))
    assert len(made.archive.steps("s")) >= 3
    assert f"[v1 m1] {rule}\n" in summary_of(history)


@pytest.mark.parametrize("share", [0.2, 0.6, 0.9, 0.97, 0.99, 1.0, 1.01, 3.0])
@pytest.mark.parametrize("layout", ["layered", "selective"])
def test_the_users_newest_message_is_never_cut(layout: str, share: float) -> None:
    made = manager(8000, policy={"layout": layout})
    newest = of_size(made, [user("START")], round(6500 * share))[0]
    items = [*turns(40), *pair("c1", "line\n" * 900), newest]
    if share > 1:
        with pytest.raises(InsufficientBudget) as caught:
            made.preflight("s", items)
        assert caught.value.shares["the user's newest message"] > 6400
        assert "file" in caught.value.hint
        return
    out = made.preflight("s", items)
    assert any(item is newest for item in out)
    assert_good(made, items, out)


def test_images_of_the_newest_result_survive() -> None:
    made = manager(8000)
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
    call, result = pair("c1", "")
    result["content"] = [picture, {"type": "text", "text": "w " * 9_000}]
    out = made.preflight("s", [user("look"), call, result])
    assert picture in out[-1]["content"]
    assert_good(made, [user("look"), call, result], out)


def test_a_cut_never_parts_a_visible_character() -> None:
    """Field failure: text cut inside a character is a 400."""
    family = "👨‍👩‍👧‍👦"
    text = (family + "é" + "🇩🇪" + "नि") * 50
    for place in range(len(text)):
        cut = safe_cut(text, place)
        assert 0 <= place - cut <= len(family)
        head = text[:cut]
        assert not head.endswith("\u200d")
        head.encode()
    for tokens in range(1, 60, 7):
        assert count(fitting_head(text, tokens, count)) <= tokens
        assert count(fitting_tail(text, tokens, count)) <= tokens


def test_head_and_tail_stays_within_its_tokens_and_keeps_an_error_at_the_end() -> None:
    text = "Line 1\n" * 500 + "data data\n" * 500 + "\nError: something failed\nat foo.ts:42\n"
    cut = head_and_tail(text, 300, count, "[... omitted ...]")
    assert count(cut) <= 310
    assert cut.startswith("Line 1")
    assert "Error: something failed" in cut
    assert "omitted" in cut
    assert preview("short", 10, 100, count) == "short"


def test_stats_say_what_each_kind_saved() -> None:
    made = manager(16_000)
    made.preflight("s", [user("go"), *(m for n in range(60) for m in pair(f"c{n}", f"output {n}\n" * 120))])
    stats = made.get_compaction_stats()
    assert set(stats["by_strategy"]) <= {"offload", "compact", "summarize", "truncate"}
    assert stats["total_tokens_saved"] == sum(stats["by_strategy"].values()) > 0
    assert stats["compaction_events"] >= 1


def test_a_backend_with_write_file_takes_the_place_of_the_archive() -> None:
    from compact import CompactConfig, CompactManager

    written: dict[str, str] = {}

    class Backend:
        def write_file(self, path: str, content: str) -> None:
            written[path] = content

    made = CompactManager(CompactConfig(max_context_tokens=16_000), archive=Backend())
    shown = made.process_tool_result("row\n" * 30_000, "query", "c1")
    (path,) = written
    assert path in shown
    assert written[path] == "row\n" * 30_000


def test_claude_counts_are_told_in_the_models_own_tokens() -> None:
    from compact import CompactConfig, CompactManager

    config = CompactConfig(
        model="claude-sonnet-4-5", max_context_tokens=16_000, archive={"adapter": "memory"}
    )
    made = CompactManager(config)
    made.preflight("s", turns(60))
    finished = events(made, name="finished")[0]["properties"]
    pruned = events(made, name="pruned_messages")[0]["properties"]
    assert abs(finished["tokens_before"] - pruned["tokens_before"]) < 20
    assert abs(finished["tokens_after"] - pruned["tokens_after"]) < 20


def test_a_summary_is_compared_with_all_that_it_replaced_an_earlier_summary_included() -> None:
    made = manager(summarizer=ScriptedSummarizer(" ".join(f"fact {n} stands." for n in range(120))))
    folded = made.manual_compact("s", turns(20))
    made.manual_compact("s", [*folded, user("One word more."), says("Yes.")])
    first, second = (event["properties"] for event in events(made, name="summary_created"))
    assert second["input_messages"] < 6, "little is new: the earlier summary is nearly all of it"
    assert second["summary_tokens"] / first["summary_tokens"] > 0.7
    assert second["compression_ratio"] < 1
