"""The API page is made from the docstrings, is the one that is checked in, and shows the names that users import."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import compact
from scripts.api_reference import PARTS, markdown, names_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "API.md"


def test_the_page_is_current() -> None:
    """If not: python -m scripts.api_reference > docs/API.md"""
    assert PAGE.read_text("utf-8") == markdown()


def test_every_name_on_it_can_be_imported_from_where_it_says() -> None:
    assert all(names_of(part) for part in PARTS)
    named = [(part.module, name) for part in PARTS for name in names_of(part)]
    assert [each for each in named if not hasattr(import_module(each[0]), each[1])] == []


def test_every_name_of_the_package_is_on_it() -> None:
    shown = {name for part in PARTS for name in names_of(part)}
    assert {name for name in compact.__all__ if not name.isupper()} <= shown


def test_a_field_with_a_choice_of_texts_lists_them() -> None:
    entry = markdown().partition("\n## Ledger\n")[2].partition("\n## ")[0]
    assert "- `kind: Kind`: One of `'rule'`, `'correction'`," in entry


METHODS = [
    "preflight",
    "manual_compact",
    "call",
    "process_tool_result",
    "aprocess_tool_result",
    "manage_context",
    "estimate",
    "observe",
    "get_compaction_stats",
    "get_system_prompt_segment",
    "recall_tools",
    "offload",
    "reduce",
    "close",
    "apreflight",
    "amanual_compact",
    "acall",
    "aclose",
    "wrap",
]


def test_the_managers_methods_are_shown_with_what_they_promise() -> None:
    page = markdown()
    for method in METHODS:
        entry = page.partition(f"#### `CompactManager.{method}`\n")[2].partition("\n#### ")[0]
        assert f"def {method}(" in entry, method
        assert len(entry.partition("```\n")[2].strip()) > 10, method


def test_what_a_class_has_from_its_parts_is_shown_and_what_a_framework_asks_for_is_not() -> None:
    page = markdown()
    assert "#### `Archive.restore`" in page
    assert "#### `CompactModel.get_response`" not in page
