"""Generate docs/API.md from the docstrings: `python -m scripts.api_reference > docs/API.md`.

The sources are parsed, not imported, so the page needs no extra and shows signatures as they are written.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeGuard

_SOURCE = Path(__file__).resolve().parents[1] / "src" / "compact"
_LINE = 100
_INTRO = """\
# API

<!-- Made by `python -m scripts.api_reference`. Change the docstrings in src/compact instead. -->

Every public name, where it is imported from, what it promises and what it raises. Settings are in [CONFIG.md](CONFIG.md),
events in [OBSERVABILITY.md](OBSERVABILITY.md); the names below are the stable ones.
"""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Part(NamedTuple):
    """A section of the page: a module and the names to import from it. Without names, all of its `__all__`."""

    title: str
    module: str
    names: tuple[str, ...] = ()


PARTS = (
    Part("The manager", "compact", ("CompactManager",)),
    Part("Configuration", "compact", ("CompactConfig",)),
    Part(
        "Errors",
        "compact",
        (
            "CompactError",
            "ConfigError",
            "MessageError",
            "TranscriptError",
            "MissingExtra",
            "RedactionError",
            "ArchiveError",
            "WindowTooSmall",
            "InsufficientBudget",
            "ContextOverflow",
            "MaskingError",
            "OutOfTime",
        ),
    ),
    Part("Protected messages", "compact", ("mark_protected", "unmarked")),
    Part("Windows", "compact.windows", ("check_window", "WindowVerdict", "window_of", "Window")),
    Part("Hygiene", "compact.hygiene"),
    Part("Cuts", "compact.cuts", ("compressible_run",)),
    Part("Checks", "compact.checks", ("violations", "Violation")),
    Part("Economy", "compact.economy"),
    Part("Tokens", "compact.tokens"),
    Part("Redaction", "compact.redaction", ("Redactor", "Redacted", "Rule")),
    Part("Overflow", "compact.runtime.overflow"),
    Part("Stages", "compact.engine.context", ("Context", "Row", "Desk")),
    Part("Effects", "compact.engine.effects", ("Store", "Emit", "drive", "adrive")),
    Part("Summaries", "compact.summaries.request", ("SummaryRequest", "Reply")),
    Part("Ledger", "compact.summaries.ledger", ("Entry",)),
    Part("Strategies", "compact.summaries.strategies", ("Strategy", "Section", "register", "get")),
    Part("Archive", "compact.archive", ("Archive", "open_archive", "Restored", "Step")),
    Part("Exporters", "compact.tracing.exporters", ("Exporter", "Sent", "Unavailable")),
    Part("OpenAI Agents SDK", "compact.integrations.openai_agents"),
    Part("LangChain and Deep Agents", "compact.integrations.langchain"),
    Part("pydantic-ai", "compact.integrations.pydantic_ai"),
    Part("LiteLLM", "compact.integrations.litellm"),
    Part("Plain hooks", "compact.integrations.hooks"),
    Part("Recovery tools in plain loops", "compact.integrations.recall"),
    Part("The addendum's middleware", "compact.middleware"),
    Part("Harness", "compact.harness"),
    Part("Replay", "compact.tools.replay", ("play", "replay", "Job", "Policy", "Played", "Run", "Step")),
    Part("Testing", "compact.testing"),
)


def markdown() -> str:
    """Return the whole page."""
    contents = "\n".join(f"- [{part.title}](#{_anchor(part.title)}): `{part.module}`" for part in PARTS)
    return "\n".join([_INTRO, contents, *(_section(part) for part in PARTS)])


def names_of(part: Part) -> tuple[str, ...]:
    """Return the names that a section shows."""
    return part.names or tuple(_exported(part.module))


def _section(part: Part) -> str:
    lines = [f"\n## {part.title}\n", f"`from {part.module} import {', '.join(names_of(part))}`\n"]
    for name in names_of(part):
        lines += _entry(*_found(part.module, name))
    return "\n".join(lines)


# --- where a name is defined


@cache
def _tree(module: str) -> ast.Module:
    path = _SOURCE.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text("utf-8"))


def _exported(module: str) -> Iterator[str]:
    """Return the names of a module's `__all__`, without constants and former names."""
    former = {ast.unparse(node.targets[0]) for node in ast.walk(_tree(module)) if _is_alias(node)}
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and "__all__" in {alias.name for alias in node.names}:
            yield from _exported(str(node.module))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            constants: list[str] = ast.literal_eval(node.value)
            yield from (name for name in constants if not name.isupper() and name not in former)


def _is_alias(node: ast.AST) -> TypeGuard[ast.Assign]:
    """Whether a line like `old_name = new_name` keeps a former name."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)


def _found(module: str, name: str) -> tuple[str, Definition]:
    """Return the module that defines a name and the definition. Re-exports are followed."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, Definition) and node.name == name:
            return module, node
        if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("compact"):
            continue
        names = {alias.name for alias in node.names}
        if name in names or ("*" in names and name in _exported(str(node.module))):
            return _found(str(node.module), name)
    raise LookupError(f"{module} has no {name}")


def _functions(module: str, owner: ast.ClassDef) -> list[Function]:
    """Return the methods of a class and of its bases. A base that has its own entry is not repeated."""
    found = {node.name: node for node in owner.body if isinstance(node, Function)}
    for base in map(ast.unparse, owner.bases):
        if base in _shown_names():
            continue
        try:
            home, above = _found(module, base)
        except LookupError:
            continue  # from the standard library or a framework
        if isinstance(above, ast.ClassDef):
            found |= {node.name: node for node in _functions(home, above) if node.name not in found}
    return list(found.values())


def _shown_names() -> frozenset[str]:
    return frozenset(name for part in PARTS for name in names_of(part))


# --- entries


def _entry(module: str, node: Definition) -> Iterable[str]:
    yield f"### `{node.name}`\n"
    if not isinstance(node, ast.ClassDef):
        yield _signature(node)
        yield _text(node)
        return
    functions = list(_functions(module, node))
    made = next((each for each in functions if each.name == "__init__"), None)
    if made is not None:
        yield _signature(made, node.name)
    yield _text(node)
    shown = [each for each in functions if _is_public(each)]
    listed = [*_fields(module, node), *(_property(each) for each in shown if _is_property(each))]
    if listed:
        yield "\n".join(listed) + "\n"
    for each in shown:
        if not _is_property(each):
            yield f"#### `{node.name}.{each.name}`\n"
            yield _signature(each)
            yield _text(each)


def _is_public(node: Function) -> bool:
    """Whether a method is documented beyond what its base or its framework says."""
    said = ast.get_docstring(node)
    return bool(said) and not str(said).startswith("See `") and node.name.strip("_") == node.name


def _is_property(node: Function) -> bool:
    return any(ast.unparse(mark).endswith("property") for mark in node.decorator_list)


def _property(node: Function) -> str:
    kind = f": {ast.unparse(node.returns)}" if node.returns else ""
    return f"- `{node.name}{kind}`: {' '.join(_text(node).split())}"


def _fields(module: str, owner: ast.ClassDef) -> Iterator[str]:
    """Yield the fields of a dataclass, each with the docstring below it and the texts it may have."""
    choices = _choices(module)
    for place, node in enumerate(owner.body):
        if not isinstance(node, ast.AnnAssign) or ast.unparse(node.target).startswith("_"):
            continue
        if "ClassVar" in ast.unparse(node.annotation):
            continue
        below = owner.body[place + 1] if place + 1 < len(owner.body) else None
        said = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            said = ": " + " ".join(str(below.value.value).split())
        if allowed := choices.get(ast.unparse(node.annotation)):
            said = f"{said or ':'} One of {allowed}."
        yield f"- `{ast.unparse(node)}`{said}"


def _choices(module: str) -> dict[str, str]:
    """Return the texts that each `Literal` of a module allows, by the name of the alias."""
    return {
        node.target.id: ", ".join(
            f"`{ast.unparse(each)}`" for each in ast.walk(node.value) if isinstance(each, ast.Constant)
        )
        for node in _tree(module).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Subscript)
        and ast.unparse(node.value.value) == "Literal"
    }


def _signature(node: Function, called: str = "") -> str:
    """Return the def line as it is written, without `self`. A long one is broken into several lines."""
    words = "async def " if isinstance(node, ast.AsyncFunctionDef) else "def " if not called else ""
    if any(ast.unparse(mark) == "classmethod" for mark in node.decorator_list):
        words = f"@classmethod\n{words}"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and not called else ""
    given = [part for part in _parameters(node.args) if part not in ("self", "cls")]
    line = f"{words}{called or node.name}({', '.join(given)}){returns}"
    if len(line) > _LINE:
        inner = "".join(f"    {part},\n" for part in given)
        line = f"{words}{called or node.name}(\n{inner}){returns}"
    return f"```py\n{line}\n```\n"


def _parameters(given: ast.arguments) -> list[str]:
    """Return one text for each parameter, including the markers `/` and `*`."""
    alone = ast.unparse(given)
    parts, depth, start = [], 0, 0
    for place, character in enumerate(alone):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(alone[start:place].strip())
            start = place + 1
    parts.append(alone[start:].strip())
    return [re.sub(r"^([^=]+: [^=]+)=", r"\1 = ", part) for part in parts if part]


def _text(node: Definition) -> str:
    """Return the docstring as Markdown, with arguments and errors as lists."""
    said = inspect.cleandoc(ast.get_docstring(node) or "")
    said = re.sub(r"^ {4}([\w, *]+): ", r"- `\1`: ", said, flags=re.MULTILINE)
    said = re.sub(r"^ {8}", "  ", said, flags=re.MULTILINE)
    return re.sub(r"^(Args|Raises|Returns):$", r"**\1**\n", said, flags=re.MULTILINE) + "\n"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


if __name__ == "__main__":
    sys.stdout.write(markdown())
