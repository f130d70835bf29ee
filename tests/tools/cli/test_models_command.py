from __future__ import annotations

import json
from pathlib import Path

import pytest

from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.tokens.models import CONFIGURED, FIELDS, check_rows, model_table
from compact.tokens.prices import Card
from compact.tools.cli.app import run
from compact.tools.pricing.billing import Sent, bill


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, dict[str, object]]]:
    assert run(["models", *arguments, "--json"]) == 0
    found: dict[str, dict[str, dict[str, object]]] = json.loads(capsys.readouterr().out)["models"]
    return found


def test_every_field_of_every_row_names_a_source_of_the_table() -> None:
    table = model_table()
    for name, row in table.rows.items():
        assert row.keys() - {"from"} == row["from"].keys(), name
        assert row.keys() - {"from"} <= set(FIELDS), name
        assert set(row["from"].values()) <= table.sources.keys(), name
    rows = {name: {key: row[key] for key in FIELDS if key in row} for name, row in table.rows.items()}
    assert check_rows(rows) is None


def test_the_rows_that_a_model_does_not_read_exist() -> None:
    table = model_table()
    named = {name for row in table.rows.values() for name in row.get("thinking", {}).get("unread", ())}
    assert named <= table.rows.keys() | {"*"}


def test_a_model_is_shown_with_where_each_number_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "anthropic/claude-opus-5.5")["anthropic/claude-opus-5.5"]
    assert found["output"] == {
        "value": 128_000,
        "row": "claude-opus-5-5",
        "from": "The model table of the package litellm 1.109.1 on PyPI, read on 2026-11-19.",
    }
    assert found["window"]["row"] == "claude-opus-5"
    assert len(shown(capsys)) == len(model_table().rows)
    assert run(["models", "claude-opus-5-5", "nobody-knows"]) == 0
    text = capsys.readouterr().out
    assert "preserved yes" in text
    assert "nobody-knows: no row of the table describes it" in text
    assert run(["models"]) == 0
    assert "gpt-4o-mini" in capsys.readouterr().out


def test_the_configuration_adds_rows_and_replaces_fields(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text(
        "models:\n  gpt-4o: {window: 64000}\n"
        "  my-claude: {encoding: cl100k_base, percent: 157, thinking: {preserved: true}, price: {input: 1, output: 2}}\n"
    )
    found = shown(capsys, "gpt-4o", "my-claude-2", "--config", str(file))
    assert found["gpt-4o"]["window"] == {"value": 64_000, "row": "gpt-4o", "from": CONFIGURED}
    assert found["gpt-4o"]["output"]["value"] == 16_384
    assert found["my-claude-2"]["percent"]["value"] == 157
    assert found["my-claude-2"]["thinking"] == {
        "value": {"preserved": True},
        "row": "my-claude",
        "from": CONFIGURED,
    }


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"windows": 1}, "models.m.windows"),
        ({"window": 0}, "models.m.window"),
        ({"window": True}, "models.m.window"),
        ({"encoding": "p50k_base"}, "models.m.encoding"),
        ({"percent": 110}, "models.m.encoding"),
        ({"encoding": "cl100k_base", "images": {"tiles": [1, 2, 3, 4]}}, "models.m.images"),
        ({"thinking": {"preserve": True}}, "models.m.thinking"),
        ({"native": "google"}, "models.m.native"),
        ({"cache": {"lives": [0]}}, "models.m.cache"),
        ({"price": {"input": 1}}, "models.m.price"),
        ({"price": {"input": 1, "output": 2, "tiers": [{"above": 10}]}}, "models.m.price"),
    ],
)
def test_a_wrong_row_is_named(row: dict[str, object], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CompactConfig(models={"m": row})
    assert [problem.text.split(":")[0] for problem in caught.value.problems] == [path]


def test_a_request_above_a_tier_is_billed_at_its_prices_as_a_whole() -> None:
    price = model_table().prices["claude-haiku-5-5"]
    assert price.at(100_000) is price
    assert price.at(100_001).input == 0.5
    card = Card("haiku", price)
    assert bill([Sent(tokens=200_000, unchanged=0, fresh=200_000)], card).cost == pytest.approx(0.1)
    assert bill([Sent(tokens=200_000, unchanged=100_000)], card).cost == pytest.approx(0.0675)


def test_a_model_reads_what_is_not_documented_as_unread() -> None:
    table = model_table()
    assert table.reads("claude-fable-5-1", "claude-opus-5-5")
    assert not table.reads("claude-opus-5-5", "claude-fable-5-1")
    assert not table.reads("claude-opus-5", "claude-fable-5.2")
    assert table.reads("claude-sonnet-5-5", "claude-sonnet-5")
    assert not table.reads("claude-haiku-5-5", "claude-haiku-4-5")
    assert table.reads("claude-haiku-5-5-20261007", "claude-haiku-5-5")
    assert table.reads("gpt-4o", "gpt-4o-mini")


@pytest.mark.parametrize(
    ("model", "preserved"),
    [
        ("claude-fable-5-2", True),
        ("claude-mythos-5.1", True),
        ("us.anthropic.claude-sonnet-5-5-v1:0", True),
        ("claude-opus-6", True),  # a Claude that nobody knows is taken for a new one
        ("claude-opus-5", False),
        ("claude-fable-5", False),
        ("claude-opus-4-5-20251101", False),
        ("claude-3-7-sonnet-latest", False),
        ("gpt-6.1-sol", False),
        ("nobody-knows", False),
    ],
)
def test_which_models_bind_their_thinking(model: str, preserved: bool) -> None:
    assert model_table().thinking(model).preserved is preserved
