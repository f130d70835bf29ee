"""The settings on the redaction page load as they are written and do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from support.redaction import letters

from compact.config import CompactConfig
from compact.redaction import MASK, Redactor, rules_from_config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "REDACTION.md"


BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_rules_on_the_page_load_and_mask() -> None:
    block, _ = BLOCKS
    settings = CompactConfig(**yaml.safe_load(block)).redaction
    redactor = Redactor(rules_from_config(settings.rules, settings.extra))
    masked = redactor.redact("TICKET-77, room 123, ann@example.org, employee_number: abc, password=hunter2")
    assert masked == f"<TICKET>, room {MASK}, {MASK}, employee_number: {MASK}, password={MASK}"


def test_the_file_of_formats_on_the_page_loads_and_masks(tmp_path: Path) -> None:
    _, block = BLOCKS
    file = tmp_path / "formats.yaml"
    file.write_text(block, "utf-8")
    token = "acme_live_" + letters("acme", 32, "abcdef0123456789")
    assert Redactor(["default", {"file": str(file)}]).redact(f"TOKEN{token}!") == f"TOKEN{MASK}!"


def test_a_bare_off_in_a_file_switches_live_masking_off(tmp_path: Path) -> None:
    file = tmp_path / "compact.yaml"
    for written, live in (("off", "off"), ("pii", "pii"), ("secrets", "secrets"), ("false", "off")):
        file.write_text(f"redaction:\n  live: {written}\n", "utf-8")
        assert CompactConfig.load(file).redaction.live == live
