"""The tables of built-in rules: what a row says, and how a wrong row is reported."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from compact.errors import RedactionError
from compact.redaction import MASK, Redactor
from compact.redaction.rules.tables import TableName, load_table, parse_table

GOOD = "- {id: first, pattern: 'first-[0-9]+', keywords: [first-]}\n"


@pytest.mark.parametrize("name", get_args(TableName))
def test_rules_of_a_built_in_table_are_text_rules_with_keywords(name: TableName) -> None:
    rules = load_table(name)
    assert len({rule.id for rule in rules}) == len(rules) > 8
    assert all(rule.scope == "text" and rule.replacement == MASK for rule in rules)
    if name != "pii":  # numbers have no fixed words, and neither have the lines of a key
        assert all(rule.keywords for rule in rules if rule.id != "private-key-lines")


def test_vendor_row_without_validator_is_checked_as_a_token_and_null_means_no_check() -> None:
    validators = {rule.id: rule.validator for rule in load_table("vendors")}
    assert validators["github"] == "token"
    assert validators["voyage"] == "random_token"
    assert validators["aws-bedrock"] is None


def test_prefixes_are_matched_literally_and_serve_as_keywords() -> None:
    (rule,) = parse_table("- {id: x, prefixes: [a.b$, 'c+'], pattern: '[0-9]{3}'}", "x.yaml")
    assert rule.keywords == ("a.b$", "c+")
    assert rule.validator is None
    redactor = Redactor([rule])
    assert redactor.redact("a.b$123 c+456 aXb$123 cc456") == f"{MASK} {MASK} aXb$123 cc456"


def test_missing_fields_of_a_row_come_from_the_defaults() -> None:
    rules = parse_table(
        f"{GOOD}- {{id: second, pattern: b+, validator: null}}", "x.yaml", {"validator": "random"}
    )
    assert [rule.validator for rule in rules] == ["random", None]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("- {id: x, pattern: '('}", "missing )"),
        ("- {id: x, pattern: '(?=a)b'}", "RE2 does not accept"),
        ("- {id: x, pattern: a, check: token}", "unknown keys check"),
        ("- {id: x, pattern: a, validator: nope}", "no validator 'nope'"),
        ("- {id: x, prefixes: [a]}", "no pattern"),
        ("- {id: x, prefixes: a, pattern: b}", "prefixes must be a list"),
        ("- {id: x, prefixes: [], pattern: b}", "prefixes must be a list"),
        ("- {id: x, prefixes: [1], pattern: b}", "prefixes must be a list"),
        ("- {id: x, prefixes: [a], keywords: [a], pattern: b}", "both prefixes and keywords"),
        ("- {id: 7, pattern: a}", "id must be"),
        ("- {pattern: a}", "no id"),
        ("- {id: first, pattern: a}", "two rows with the id 'first'"),
        ("- just words", "expected a row"),
        ("- {id: x, pattern: 'a}", "not YAML"),
        ("- {id: x, pattern: [}", "not YAML"),
    ],
)
def test_wrong_row_is_refused_with_its_file_and_line(row: str, reason: str) -> None:
    with pytest.raises(RedactionError) as refused:
        parse_table(f"# a comment\n{GOOD}\n{row}\n", "own.yaml")
    assert reason in str(refused.value)
    if reason != "not YAML":
        assert refused.value.line == 4
    assert str(refused.value).startswith(f"own.yaml, line {refused.value.line}: ")


@pytest.mark.parametrize("text", ["", "a: b", "words"])
def test_table_that_is_not_a_list_is_refused(text: str) -> None:
    with pytest.raises(RedactionError, match="expected a list of rows"):
        parse_table(text, "own.yaml")


def test_tables_are_read_by_the_first_redactor_and_not_by_the_import() -> None:
    code = "import sys, compact.redaction as r; assert 'yaml' not in sys.modules; r.Redactor(); assert 'yaml' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
