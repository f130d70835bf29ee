from __future__ import annotations

from pathlib import Path

from compact.config import CompactConfig
from compact.config.sections import SECTIONS, AllSettings
from scripts.config_reference import field_docs, markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "CONFIG.md"


def test_the_page_is_current() -> None:
    """If this fails: python -m scripts.config_reference > docs/CONFIG.md."""
    assert PAGE.read_text(encoding="utf-8") == markdown()


def test_every_setting_has_a_docstring() -> None:
    for section in SECTIONS.values():
        assert set(field_docs(section)) == set(section.model_fields)
    assert set(field_docs(AllSettings)) == set(AllSettings.model_fields) - set(SECTIONS)


def test_the_page_names_every_setting_and_its_variables() -> None:
    page = markdown()
    for path in CompactConfig().sources:
        assert f"`{path.rpartition('.')[2]}`" in page
        assert f"`COMPACT_{path.upper().replace('.', '__')}`" in page
