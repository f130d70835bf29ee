"""Settings files as text and as values, within bounds: YAML and JSON, UTF-8, plain values, every key once.

Aliases are refused, because a few hundred bytes of them can stand for gigabytes. So are keys that are given twice or merged
from elsewhere (`<<`), of which a reader may see the one and the program use the other, tags, which settings do not need, and
values that are nested or written without any measure.
"""

from __future__ import annotations

import json
import os
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

MOST_BYTES = 64_000
"""The size of a settings file. Reading YAML takes a second for 100 KB of short keys."""
MOST_DEPTH = 40
"""How deep values are nested: 1 is a document that is a single value."""
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
        SettingsProblem: it is not JSON, has a key twice, is nested more than `MOST_DEPTH` deep, or a value cannot be read,
            such as a number of thousands of digits.
    """
    try:
        value = json.loads(text, object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        raise SettingsProblem(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except SettingsProblem:
        raise
    except RecursionError:
        raise SettingsProblem(f"nested deeper than {MOST_DEPTH}") from None
    except Exception as error:
        raise SettingsProblem(f"a value cannot be read: {error}") from None
    _check_depth(value)
    return value


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(MOST_DEPTH):
        inside = [
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        ]
        level = list(chain.from_iterable(inside))
    if level:
        raise SettingsProblem(f"nested deeper than {MOST_DEPTH}")


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
        SettingsProblem: it is not YAML; it has aliases, tags, merges, a key twice or one that is no plain value; it is nested
            more than `MOST_DEPTH` deep; or a value cannot be read, such as the 40th of May.
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
    except Exception as error:  # whatever PyYAML stumbles over, the text is to blame
        raise SettingsProblem(f"a value cannot be read: {str(error) or type(error).__name__}") from error


def _strange(event: Any) -> str:
    """What begins here that settings do not have; empty if it is a plain value."""
    if not hasattr(event, "tag"):
        return f"aliases (*{event.anchor:.40})"
    return "" if event.tag is None else f"tags ({event.tag:.40})"


@cache
def _loader() -> type[Any]:
    import yaml

    safe: Any = yaml.SafeLoader  # its methods are not typed

    def refuse(what: str, place: Any) -> Exception:
        return yaml.constructor.ConstructorError(None, None, what, place.start_mark)

    class Loader(safe):  # type: ignore[misc]
        """Composes no aliases, no tags and no deep nests, and constructs every key once."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()
            if strange := _strange(event):
                raise refuse(f"{strange} are not supported", event)
            self.depth += 1
            if self.depth > MOST_DEPTH:
                raise refuse(f"nested deeper than {MOST_DEPTH}", event)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            if not isinstance(node, yaml.ScalarNode):
                return super().construct_object(node, deep)
            is_number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
            if is_number and len(node.value) > _MOST_DIGITS:
                raise refuse(f"a number of {len(node.value):,} characters", node)
            try:
                return super().construct_object(node, deep)
            except yaml.YAMLError:
                raise
            except Exception as error:
                raise refuse(f"{node.value!r:.40} cannot be read: {error}", node) from None

        def flatten_mapping(self, node: Any) -> None:
            """Check the keys, where PyYAML would merge those of other mappings."""
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise refuse("a key must be a plain value", key)
                if key.tag == "tag:yaml.org,2002:merge":
                    raise refuse("merges (<<) are not supported", key)
                name = str(self.construct_object(key))  # 1 and "1" name the same setting
                if name in seen:
                    raise refuse(f"the key {key.value!r:.40} is given twice", key)
                seen.add(name)

    return Loader
