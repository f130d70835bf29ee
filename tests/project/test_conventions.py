"""Conventions of the source and of the tests that no linter knows. Each test names every place that breaks its rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "compact"
TESTS = ROOT / "tests"
LONGEST_FILE = 500
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns"}

REACHES_ALLOWED = {
    "project/test_peers.py": {
        "_LONGEST_S",
        "_Outcome",
        "_importing",
        "_limited",
    },  # measurements name this source
    "project/test_version.py": {"_version"},  # the module
    "runtime/overflow/test_recognising.py": {"_make_status_error_from_response"},  # of the providers' SDKs
}
"""Private names that a test file may still use. This list only shrinks."""


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file. Most tests here look at all of them."""
    return tuple(ast.walk(parse(path)))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def room_of(module: str) -> str:
    """The first name below the package; the empty text for the package itself."""
    return (*module.split(".")[1:], "")[0]


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def private_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Private names of other objects and modules: attributes, imports, and what is patched by its name."""
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls" | "os" | "sys")):
                continue
            case ast.Attribute(attr=name) if is_private(name):
                yield node.lineno, name
            case ast.ImportFrom(module=str(module), names=names):
                for name in (*module.split("."), *(each.name for each in names)):
                    if is_private(name):
                        yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr"), args=arguments):
                for argument in arguments[:2]:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        name = argument.value.rpartition(".")[2]
                        if is_private(name):
                            yield node.lineno, name


def test_no_test_reaches_into_private_names() -> None:
    """Tests hold the public behaviour, so that the inside can change without them."""
    found: dict[str, set[str]] = {}
    places: list[str] = []
    for path in sorted(TESTS.rglob("*.py")):
        file = str(path.relative_to(TESTS))
        for line, name in private_names(nodes_of(path)):
            found.setdefault(file, set()).add(name)
            if name not in REACHES_ALLOWED.get(file, ()):
                places.append(f"{file}:{line}: {name}")
    assert places == []
    unused = {file: names - found.get(file, set()) for file, names in REACHES_ALLOWED.items()}
    assert {file: names for file, names in unused.items() if names} == {}, "take these off the list"


def test_no_test_reads_a_clock() -> None:
    """A test that measures time fails on a busy machine. pytest-timeout ends a hang, benchmarks measure speed."""
    places = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
        and node.attr in CLOCKS
    ]
    assert places == []


def test_a_file_can_be_read_in_one_sitting() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {str(path): length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_room_imports_a_private_name_of_another() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.module}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module.startswith("compact.")
        and room_of(node.module) != room_of(module_of(path))
        and any(is_private(name) for name in (*node.module.split("."), *(each.name for each in node.names)))
    ]
    assert places == []


def test_no_room_imports_another_by_a_string() -> None:
    """The layers are checked on import statements: a module that is imported by name would escape the check.

    Only the package itself looks up its public names that way.
    """
    places = []
    for path in sorted(SOURCE.rglob("*.py")):
        own = room_of(module_of(path))
        for node in nodes_of(path):
            if not isinstance(node, ast.Call) or not node.args or not own:
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called not in {"import_module", "__import__", "find_spec", "run_module"}:
                continue
            named = re.match(r"f?['\"](compact(?:\.\w+)*)", ast.unparse(node.args[0]))
            if named and room_of(named[1]) != own:
                places.append(f"{path.relative_to(ROOT)}:{node.lineno}: {named[1]}")
    assert places == []
