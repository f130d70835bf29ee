"""Names of fields: which rule a value falls under by its name.

A name is compared in normalized form: `dbPassword`, `DB-PASSWORD` and `db.password` are all `db_password`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from compact.redaction.disguises import without_disguise
from compact.redaction.rules.rule import Rule
from compact.redaction.rules.validators import KINDS
from compact.redaction.ui_texts import is_name_of_text

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[^0-9A-Za-z\u0080-\U0010ffff]+")
_LONGEST_NAME = 200
_REMEMBERED_NAMES = 20_000

_INNOCENT = re.compile(
    r"(?:^|_)(?:public|primary|foreign|cache|sort|partition|row|object|s3|idempotency|lookup|map|dict|group|index|"
    r"hot|parent|composite|natural|unique|translation|i18n|config|metric|field|issue|project|dedup\w*|hash|range|"
    r"next|page|nextpage|continuation|sync|cursor|eos|bos|pad|unk|sep|cls|mask|special|start|end|first|last|stop|"
    r"max|min|num|csrf|xsrf|forgery)_?(?:key|token)s?\d*$|"
    r"(?:passw(?:or[dt]|d)|secret|key|token)s?_(?:name|names|url|uri|path|file|dir|type|types|length|len|count|regex|"
    r"pattern|prefix|suffix|format|version|policy|ttl|expir\w*|ref|arn|env|var|header|field|label|hint|error|usage|limit|size|index|"
    r"pos|position|budget|estimate|cost|price|rate|window)s?$|"
    r"(?:passw(?:or[dt]|d)|secret|key|token)s?_(?:\w+_)?(?:at|date|time|timestamp|days|age)$|(?:key|token)s?_ids?$|"
    r"(?:^|_)(?:no|bypass|first|second|two|multi|single)_pass$|public_?key"
)
_TYPE_NAME = re.compile(r"[A-Z]\w*(?:::[A-Z]\w*)+\Z")
"""The type of a resource, which is no field: `AWS::ApiGateway::ApiKey`."""
_DESCRIPTION_WORDS = frozenset(
    {"type", "description", "title", "context", "placeholders", "format", "sourceText"}
)
"""What an object has that describes a field and has no value in it."""
_LABELS = (
    "name", "Name", "key", "Key", "keyName", "id", "field", "variable", "selector", "element", "locator", "label", "placeholder",
)  # fmt: skip
_LABELLED = frozenset({"value", "Value", "val", "text"})
_SAID_WORDS = re.compile(r"[A-Za-z][\w-]{1,60}")
_HOLDERS = frozenset({"data", "stringData"})
MANIFEST = Rule("secret-manifest", r"\Asecret_manifest\z", ("secret_manifest",), scope="key")
"""The rule of values that are declared to be secret: the data of a Kubernetes Secret, a sensitive output of Terraform."""
_SCHEMA_WORDS = frozenset({"$ref", "anyOf", "oneOf", "allOf", "properties", "enum"})
_SCHEMA_TYPES = frozenset({"string", "object", "number", "integer", "boolean", "array", "null"})


class FieldNames:
    """The rules of scope `key`, looked up by a field's name."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._look_up = lru_cache(maxsize=_REMEMBERED_NAMES)(self._find_rule)

    def rule_for(self, name: str) -> Rule | None:
        """The first rule that the name falls under, or None."""
        return self._look_up(name[-_LONGEST_NAME:])

    def _find_rule(self, name: str) -> Rule | None:
        normal = normalize_name(name)
        if not normal or _TYPE_NAME.match(name):
            return None
        # Innocent names are spared only by rules that ask for a kind of value. Other rules mask every name they match.
        spared = KINDS if is_innocent(normal) else ()
        matching = (rule for rule in self.rules if rule.regex.occurs_in(normal))
        found = next((rule for rule in matching if rule.validator not in spared), None)
        if found is not None and found.validator in ("literal", "mixed") and is_name_of_text(normal):
            return replace(found, validator="random")
        return found


@lru_cache(maxsize=8192)
def normalize_name(name: str) -> str:
    """The form in which names are compared: lower case, words joined by underscores."""
    parted = _HUMP.sub("_", without_disguise(name[-_LONGEST_NAME:]))
    return _SEPARATORS.sub("_", parted).strip("_").lower()


def is_innocent(name: str) -> bool:
    """Whether a normalized name only looks like a secret's: `primary_key`, `next_page_token`, `eos_token`."""
    return _INNOCENT.search(name) is not None


def rule_in_object(name: Any, siblings: Mapping[Any, Any], field_names: FieldNames) -> Rule | None:
    """The rule of a value in an object, by its own name or by a label beside it.

    A label is a name that is a value too: `{"name": "DB_PASSWORD", "value": "..."}`, or says where a text is typed:
    `{"selector": "#password", "text": "..."}`.
    """
    if name in _HOLDERS and siblings.get("kind") == "Secret" and field_names.rule_for("secret"):
        return MANIFEST
    rule = field_names.rule_for(name) if isinstance(name, str) else None
    if rule is not None or name not in _LABELLED:
        return rule
    if siblings.get("sensitive") is True and field_names.rule_for("secret"):
        return MANIFEST
    for label in _LABELS:
        rule = _rule_said(siblings.get(label), field_names)
        if rule is not None:
            return rule
    return None


def nearest_rule(own: Rule | None, inherited: Rule | None) -> Rule | None:
    """The rule of a value: that of its own name, unless all that it is a part of is declared to be secret."""
    return inherited if inherited is MANIFEST else own or inherited


def _rule_said(said: Any, field_names: FieldNames) -> Rule | None:
    """The rule of what a label says: a name, or a selector or a description that has a name in it."""
    if not isinstance(said, str) or len(said) > _LONGEST_NAME:
        return None
    rule = field_names.rule_for(said)
    if rule is not None:
        return rule
    words = (word for word in _SAID_WORDS.findall(said) if word.lower() not in ("secret", "key", "auth"))
    rules = (field_names.rule_for(word) for word in words)
    return next((rule for rule in rules if rule is not None and rule.validator in ("literal", "mixed")), None)


def is_schema(data: Mapping[Any, Any]) -> bool:
    """Whether an object describes a field (JSON Schema) and so holds no value of it."""
    kind = data.get("type")
    if "value" in data and "sensitive" in data:
        return False  # an output of Terraform
    if "description" in data and _DESCRIPTION_WORDS.issuperset(data):
        return True
    return (isinstance(kind, str) and kind in _SCHEMA_TYPES) or any(word in data for word in _SCHEMA_WORDS)
