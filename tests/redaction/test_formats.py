"""Vendors' formats: every row of the table finds the tokens it describes, in any surrounding; users bring tables of their own."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from random import Random

import pytest
from support.redaction import letters, matching

from bench.attack.formats import ALPHABETS, is_left, make_token
from compact.config import CompactConfig
from compact.errors import ConfigError, RedactionError
from compact.redaction import MASK, Redactor, rules_from_config
from compact.redaction.rules import tables
from compact.redaction.rules.tables import Format, load_formats, parse_formats

FORMATS = {row.rule.id: row for row in load_formats("vendors")}
REDACTOR = Redactor()
HEX = ALPHABETS["hex"]


def test_a_row_says_where_the_format_is_described_and_when() -> None:
    assert len(FORMATS) > 200
    for name, row in FORMATS.items():
        assert row.source, name
        assert row.shapes, name
        assert row.as_of is not None, name
        assert row.as_of >= date(2026, 11, 1), name


def test_the_tokens_that_a_row_describes_are_masked() -> None:
    """The tokens are made from the column `shapes`, which does not use the pattern."""
    for name, row in FORMATS.items():
        for prefix in row.prefixes or ("",):
            for shape in row.shapes:
                one = Format(row.rule, (prefix,) if prefix else (), (shape,))
                token, drawn = make_token(one, Random(name))
                assert not is_left(drawn, REDACTOR.redact(f"see {token} there")), (name, token)


@pytest.mark.parametrize(
    "before", ["\x1b[31m", "\\n", "\\x20", "\\u0022", "%20", "%3D", "_", "&quot;", "=3D", "密钥"]
)
def test_what_the_pattern_of_a_row_matches_is_masked_behind_an_escape(before: str) -> None:
    for name, row in FORMATS.items():
        token = matching(row.rule.pattern, name)
        masked = REDACTOR.redact(f"a {before}{token} b")
        assert token not in masked, name
        assert MASK in masked, name


@pytest.mark.parametrize(
    "text",
    [
        "(id)hf_requiredCharacteristicTypesForDisplayMetadata",
        "the vipul-f0eb1acf0da84c06a50c5b2c59932001997786b1.png",
        "TODAYINASIAASACKOFRICEFELLOVER",
        f"data {letters('blob', 60)}AIza{letters('blob2', 60)}",
        "AKIAIOSFODNN7EXAMPLE",
        "AKIAXXXXXXXXXXXXXXXX",
        "github_pat_xxxxxxxxxxxxxxxxxxxxxx_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        f"phc_{letters('public', 43)}",
        f"pk_live_{letters('public', 40)}",
        f"sb_publishable_{letters('public', 30)}",
    ],
)
def test_names_data_stand_ins_and_public_keys_are_left(text: str) -> None:
    assert REDACTOR.redact(text) == text


@pytest.mark.parametrize(
    "tail", ["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "...", "…", "_and_more", "********"]
)
def test_filler_behind_a_token_does_not_save_it(tail: str) -> None:
    token = letters("filled", 40)
    assert token[:12] not in REDACTOR.redact(f"glpat-{token}{tail}")
    assert token[:12] not in REDACTOR.redact(f"ghp_{token}{tail}")


def test_tokens_without_anything_between_them_are_all_masked() -> None:
    tokens = [f"ghp_{letters(f'glued {number}', 36)}" for number in range(3)]
    masked = REDACTOR.redact("".join(tokens))
    assert not is_left(tokens, masked)


OWN = """
- id: acme
  prefixes: [acme_]
  pattern: '[a-z0-9]{12,}'
  shapes: ['<lower 16>']
  source: our own wiki
  as_of: 2026-01-31
- {id: github, prefixes: [ghp_], pattern: '[a-z]{3}', validator: null}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "formats.yaml"
    path.write_text(OWN, encoding="utf-8")
    return path


def test_a_file_of_formats_extends_the_rules_and_replaces_those_of_the_same_name(own: Path) -> None:
    redactor = Redactor(["default", {"file": str(own)}])
    assert redactor.redact("use acme_a1b2c3d4e5f6g7 and ghp_abc") == f"use {MASK} and {MASK}"
    assert redactor.scan("glpat-" + letters("kept", 20)).by_rule == {"gitlab": 1}


def test_a_file_of_formats_replaces_the_built_in_table(own: Path) -> None:
    redactor = Redactor(["common", {"file": own}])
    text = "glpat-" + letters("gone", 20)
    assert redactor.redact(f"see {text}") == f"see {text}"
    assert redactor.redact("see acme_a1b2c3d4e5f6g7, password=hunter2") == f"see {MASK}, password={MASK}"
    assert {rule.id for rule in rules_from_config("default")} == {
        rule.id for name in ("common", "vendors") for rule in rules_from_config(name)
    }


def test_the_settings_take_a_file_of_formats(own: Path) -> None:
    config = CompactConfig(redaction={"extra": [{"file": str(own)}]})
    rules = rules_from_config(config.redaction.rules, config.redaction.extra)
    assert "acme" in {rule.id for rule in rules}


@pytest.mark.parametrize(
    ("text", "reason", "rule"),
    [
        ("- {id: bad, prefixes: [x_], pattern: '('}", "missing )", "bad"),
        ("- {id: bad, prefixes: [x_], pattern: 'a*', start: edge}", "its start must be one of anywhere, word", "bad"),
        ("- {id: bad, prefixes: [x_], pattern: a, shapes: x}", "its shapes must be a list", "bad"),
        ("- {id: bad, prefixes: [x_], pattern: a, as_of: soon}", "its as_of must be a date", "bad"),
        ("- {id: bad, prefixes: [x_], pattern: a, source: [x]}", "its source must be a text", "bad"),
        ("- {id: bad, prefixes: [x_], pattern: a, as_of: 2026-02-31}", "day is out of range", None),
        ("- &a {id: one, pattern: abc}\n- *a", "aliases are not accepted", None),
        ("- {id: one, pattern: abc, keywords: &k [a, b]}\n- {id: two, pattern: b, keywords: *k}", "aliases", None),
        ("[" * 5_000, "not YAML", None),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_its_name_and_the_rule(
    tmp_path: Path, text: str, reason: str, rule: str | None
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RedactionError) as refused:
        Redactor(["default", {"file": str(path)}])
    assert reason in str(refused.value)
    assert str(path) in str(refused.value)
    assert refused.value.details.get("rule") == rule
    with pytest.raises(ConfigError, match=r"redaction\.extra\[0\]"):
        CompactConfig(redaction={"extra": [{"file": str(path)}]})


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RedactionError, match=r"missing\.yaml.*No such file"):
        Redactor([{"file": str(tmp_path / "missing.yaml")}])
    with pytest.raises(RedactionError, match="Is a directory"):
        Redactor([{"file": str(tmp_path)}])
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RedactionError, match="cannot be read"):
        Redactor([{"file": str(binary)}])
    monkeypatch.setattr(tables, "MAX_FILE_BYTES", 10)
    binary.write_bytes(b"# too long a file")
    with pytest.raises(RedactionError, match="more than 10 bytes"):
        Redactor([{"file": str(binary)}])


@pytest.mark.parametrize("entry", [{"file": ""}, {"file": 7}, {"file": "x.yaml", "pattern": "a"}])
def test_an_entry_with_a_file_has_nothing_else(entry: dict[str, object]) -> None:
    with pytest.raises(RedactionError, match="path of a file and nothing else"):
        Redactor([entry])


def test_a_word_edge_knows_escapes_and_a_token_may_start_anywhere_without_one() -> None:
    (row,) = parse_formats(
        "- {id: x, prefixes: [ab-], pattern: '[0-9]{4}', start: word, end: word}", "x.yaml"
    )
    redactor = Redactor([row.rule])
    assert (
        redactor.redact("ab-1234 \\nab-1234 _ab-1234_ %20ab-1234") == f"{MASK} \\n{MASK} _{MASK}_ %20{MASK}"
    )
    assert redactor.redact("xab-1234 ab-12345 ab-1234x") == "xab-1234 ab-12345 ab-1234x"
    (row,) = parse_formats("- {id: x, prefixes: [ab-], pattern: '[0-9]{4}'}", "x.yaml")
    assert Redactor([row.rule]).redact("xab-1234") == f"x{MASK}"
