"""docs/CONFIG.md, made from the settings themselves: `python -m scripts.config_reference > docs/CONFIG.md`."""

from __future__ import annotations

import ast
import inspect
import sys
from itertools import pairwise

from pydantic import BaseModel

from compact.config.kinds import kind_of, plain
from compact.config.root import CompactConfig
from compact.config.sections import SECTIONS
from compact.config.sources import BLOCK_FIELDS, BLOCK_MEANS, PRESETS, FieldPath, variables_of

_INTRO = """\
# Configuration

<!-- Made by `python -m scripts.config_reference`. Change the docstrings in src/compact/config instead. -->

Settings come from four places; a later one wins, field by field:

1. the defaults below, or a preset: `CompactConfig.preset("progressive")`
2. a file: `CompactConfig.load("path/to/compact.yaml")`. Without a path, `compact.yaml`, `compact.yml` or `compact.json`
   of the current directory is read if there is one
3. environment variables
4. keyword arguments: `CompactConfig(model="gpt-4o", policy={"trigger_pct": 0.9})`

A key may be written as a path, too: `policy.trigger_pct: 0.9`. `CompactConfig(...)` reads no file.

`compact config show` prints every value and where it came from; `CompactConfig.sources` tells a program. A wrong
setting is a `ConfigError` that names the field and what is allowed (`policy.trigger_pct must be 0.0-1.0, got 1.7`). All
wrong settings are listed at once, and an unknown name is one of them.

## Environment variables

`COMPACT_` and the path in capitals, with two underscores between section and field: `COMPACT_SUMMARY__MAX_TOKENS=1500`.
The fields of `policy` have a short name too, `COMPACT_TRIGGER_PCT=0.9`; if both are set, the long one wins.

- `null` unsets a field that may be null. An empty variable counts as not set.
- Lists: `system,developer` or `[system, developer]`. Mappings: `{"my-model": 32000}`.
- `COMPACT_POLICY__TRIGER_PCT` is an error. Another `COMPACT_...` without two underscores is ignored, because it may
  belong to another program; `compact config show` lists those.
"""

_BLOCK = """\
## The `compact:` block

The block of the context compaction PRD is read as it is written there:

```yaml
compact:
  max_tokens: 2000
  token_threshold: 60000
  retention_window: 6
  model: google/gemini-2.0-flash-001
  summary_tag: summary
```

It may stand beside the sections above, which win where both say something. Its `model` is the one that writes
summaries. Being there at all, it means {means}.

| parameter | setting |
|---|---|
"""


def markdown() -> str:
    """The whole page."""
    top = [name for name in CompactConfig.model_fields if name not in SECTIONS]
    parts = [_INTRO, "## Top level\n\n" + _table(CompactConfig, top, ())]
    for name, section in SECTIONS.items():
        about = inspect.getdoc(section)
        parts.append(f"## `{name}`\n\n{about}\n\n" + _table(section, list(section.model_fields), (name,)))
    parts += [_presets(), _block()]
    return "\n".join(parts)


def field_docs(owner: type) -> dict[str, str]:
    """The docstring below each field of a class, read from its source."""
    (body,) = (
        node.body for node in ast.parse(inspect.getsource(owner)).body if isinstance(node, ast.ClassDef)
    )
    found = {}
    for field, below in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def _table(owner: type[BaseModel], names: list[str], prefix: FieldPath) -> str:
    docs = field_docs(owner)
    lines = ["| key | default | allowed | meaning | variables |", "|---|---|---|---|---|"]
    for name in names:
        kind = kind_of(owner, name)
        allowed = f"{kind.allowed} or null" if kind.nullable else kind.allowed
        default = owner.model_fields[name].get_default(call_default_factory=True)
        variables = " ".join(f"`{variable}`" for variable in variables_of((*prefix, name)))
        lines.append(f"| `{name}` | `{plain(default)}` | {allowed} | {docs[name]} | {variables} |")
    return "\n".join(lines) + "\n"


def _presets() -> str:
    lines = ["## Presets\n", "| preset | sets |", "|---|---|"]
    for name, values in PRESETS.items():
        sets = ", ".join(f"`{'.'.join(path)}: {plain(value)}`" for path, value in values.items())
        lines.append(f"| `{name}` | {sets or 'nothing: these are the defaults'} |")
    return "\n".join(lines) + "\n"


def _block() -> str:
    means = " and ".join(f"`{'.'.join(path)}: {plain(value)}`" for path, value in BLOCK_MEANS.items())
    rows = [f"| `{name}` | `{'.'.join(path)}` |" for name, path in BLOCK_FIELDS.items()]
    return _BLOCK.format(means=means) + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
