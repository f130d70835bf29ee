"""`summary.prompt`, `summary_tag` and the other parameters of the context compaction PRD; templates without logic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.engine import events, summary_of
from support.llm import HEADINGS, Answer, good_summary, llm_manager, serving, work

from compact import CompactConfig, CompactManager
from compact.errors import ConfigError
from compact.summaries import strategies, templates
from compact.summaries.llm import inside_tag


def filled(prompt: str) -> str:
    strategy = strategies.get("task_state")
    return templates.load(prompt).fill(templates.values_for(strategy, 500, "summary"))


def test_the_prds_partial_is_shipped() -> None:
    text = filled("{{> system-prompt-context-summarizer.hbs }}")
    assert "At most 500 tokens" in text
    assert "<summary>" in text
    assert all(heading in text for heading in HEADINGS)
    assert "{{" not in text


def test_a_template_file_finds_its_partials_beside_it(tmp_path: Path) -> None:
    (tmp_path / "tone.hbs").write_text("Be dry.")
    (tmp_path / "mine.hbs").write_text(
        "{{! mine }}Write {{max_tokens}} tokens. {{> tone.hbs}}{{> context-summarizer-rules.hbs}}"
    )
    text = filled(str(tmp_path / "mine.hbs"))
    assert text.startswith("Write 500 tokens. Be dry.Rules:")


def test_values_are_text_and_never_templates() -> None:
    prompt = templates.load("{{strategy}} / {{summary_tag}}")
    values = {"strategy": "{{> secrets }} {{max_tokens}}", "summary_tag": "t"}
    assert prompt.fill(values) == "{{> secrets }} {{max_tokens}} / t"


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ("{{#if x}}a{{/if}}", "summary.prompt has '{{#if x}}'; allowed are"),
        ("{{ __import__('os') }}", "summary.prompt has"),
        ("{{{raw}}}", "summary.prompt has"),
        ("{{> nobody.hbs}}", "includes an unknown partial 'nobody.hbs'"),
        ("{{> ../../secret }}", "summary.prompt has"),
        ("missing/file.hbs", "names a file that does not exist"),
    ],
)
def test_anything_else_is_refused_before_work_begins(prompt: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"^summary\.prompt") as caught:
        CompactManager(CompactConfig(archive={"adapter": "memory"}, summary={"prompt": prompt}))
    assert problem in str(caught.value)


def test_a_template_that_includes_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop.hbs").write_text("{{> loop.hbs}}")
    with pytest.raises(ConfigError, match="includes itself"):
        templates.load(str(tmp_path / "loop.hbs"))


@pytest.mark.parametrize("bad", ["mine.hbs", "tone.hbs"], ids=["template", "partial"])
def test_a_file_that_is_not_utf8_is_refused_by_its_path(bad: str, tmp_path: Path) -> None:
    (tmp_path / "mine.hbs").write_text("{{> tone.hbs}}")
    (tmp_path / "tone.hbs").write_text("Be dry.")
    (tmp_path / bad).write_bytes("Schön kurz.".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"^summary\.prompt .* not UTF-8 at byte 3: ") as caught:
        templates.load(str(tmp_path / "mine.hbs"))
    assert str(tmp_path / bad) in str(caught.value)


def test_a_prompt_of_the_hosts_own_is_sent_as_it_is() -> None:
    said = "The login in src/auth/login.py is repaired next, and the database is left alone."
    with (
        serving(Answer(said)) as endpoint,
        llm_manager(endpoint.base_url, prompt="Just one sentence, please.") as made,
    ):
        after = made.manual_compact("s", work())
        assert endpoint.prompts == ["Just one sentence, please."] * len(endpoint.prompts)
        assert said in summary_of(after)
        assert events(made, name="error") == []


def test_the_prds_block_as_written_there() -> None:
    block: dict[str, Any] = {
        "max_tokens": 2000,
        "token_threshold": 60000,
        "retention_window": 6,
        "model": "google/gemini-2.0-flash-001",
        "prompt": "{{> system-prompt-context-summarizer.hbs }}",
        "summary_tag": "summary",
    }
    config = CompactConfig(compact=block, archive={"adapter": "memory"})
    said = "## Progress\nRead src/auth/module_0.py and its neighbours; the check for expiry is still missing."
    with serving(Answer(f"<summary>{said}</summary>")) as endpoint:
        summary = config.summary.model_copy(update={"base_url": endpoint.base_url})
        with CompactManager(config.model_copy(update={"summary": summary})) as made:
            items = work()
            after = made.manual_compact("s", items)
            assert endpoint.requests[0]["model"] == "google/gemini-2.0-flash-001"
            assert len(after) < len(items)
            assert [m for m in after if m["role"] == "user"] == [m for m in items if m["role"] == "user"]
            assert events(made, name="error") == []
            assert said in summary_of(after)
            record = made.archive.summary("s", made.archive.step("s", 1))["summaries"][0]
            assert record["writer"] == "configured"


def test_summary_tag_is_configurable() -> None:
    with (
        serving(lambda _: good_summary(tag="memo")) as endpoint,
        llm_manager(endpoint.base_url, summary_tag="memo") as made,
    ):
        after = made.manual_compact("s", work())
        assert "between <memo> and </memo>" in endpoint.prompts[0]
        assert "memo>" not in summary_of(after)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("Sure!\n<summary>\nthe text\n</summary>\nAnything else?", "the text"),
        ("<summary>never closed", "never closed"),
        ("no tag at all", "no tag at all"),
        ("<think><summary>draft</summary></think><summary>final</summary>", "final"),
        ("<other>x</other>", "<other>x</other>"),
    ],
)
def test_summary_tag_extraction(text: str, inside: str) -> None:
    assert inside_tag(text, "summary") == inside
