"""Settings files as text and as values, within bounds: YAML and JSON, UTF-8, plain values, every key once.

Aliases are refused, because a few hundred bytes of them can stand for gigabytes. So are keys that are given twice, of which
a reader may see the one and the program use the other, and values that are nested or written without any measure.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

MOST_BYTES = 256_000
"""The size of a settings file. Reading YAML takes seconds for a megabyte."""
MOST_DEPTH = 40
_MOST_DIGITS = 100


class SettingsProblem(ValueError):
    """Text that is not JSON or YAML, or is refused. The message names the line."""


def read_settings(path: str | os.PathLike[str]) -> str:
    """Read the text of a settings file.

    Raises:
        OSError: the file cannot be read.
        SettingsProblem: it is larger than `MOST_BYTES`, or not UTF-8 text.
    """
    with Path(path).open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise SettingsProblem(f"is larger than {MOST_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsProblem(f"is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}") from None


def load_json(text: str) -> Any:
    """Read one JSON document.

    Raises:
        SettingsProblem: it is not JSON, or has a key twice.
        ValueError, RecursionError: a value cannot be read: a number of thousands of digits, a deep nest.
    """
    try:
        return json.loads(text, object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        raise SettingsProblem(f"line {error.lineno}, column {error.colno}: {error.msg}") from None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise SettingsProblem(f"the key {key!r:.40} is given twice")
        found[key] = value
    return found


def load_yaml(text: str) -> Any:
    """Read one YAML document into plain values.

    Raises:
        SettingsProblem: it is not YAML, has aliases or a key twice, or is nested more than `MOST_DEPTH` deep.
        ValueError: a value cannot be read, such as the 40th of May.
    """
    import yaml  # slow to import, and few processes read YAML

    try:
        return yaml.load(text, _loader())  # noqa: S506  (it is a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise SettingsProblem(f"{where}{error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SettingsProblem(f"line {line}: {error.reason}") from None
    except yaml.YAMLError as error:
        raise SettingsProblem(str(error)) from error


@cache
def _loader() -> type[Any]:
    import yaml

    safe: Any = yaml.SafeLoader  # its methods are not typed

    class Loader(safe):  # type: ignore[misc]
        """Composes no aliases and no deep nests, and constructs every key once."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                alias = self.peek_event()
                raise yaml.composer.ComposerError(
                    None, None, f"aliases (*{alias.anchor:.40}) are not supported", alias.start_mark
                )
            self.depth += 1
            if self.depth > MOST_DEPTH:
                where = self.peek_event().start_mark
                raise yaml.composer.ComposerError(None, None, f"nested deeper than {MOST_DEPTH}", where)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
                    what = f"the key {key.value!r:.40} is given twice"
                    raise yaml.constructor.ConstructorError(None, None, what, key.start_mark)
                seen.add((key.tag, key.value))
            return super().construct_mapping(node, deep)

        def construct_yaml_int(self, node: Any) -> Any:
            if len(node.value) > _MOST_DIGITS:
                what = f"a number of {len(node.value):,} characters"
                raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)
            return super().construct_yaml_int(node)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    return Loader
