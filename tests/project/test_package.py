"""The package's face: names, layers' promises that a linter cannot see, and what importing it costs."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import compact
from compact.errors import CompactError, InsufficientBudget, MissingExtra

SOURCE = Path(compact.__file__).parent


def test_the_exported_names_are_sorted_complete_and_real() -> None:
    assert compact.__all__ == sorted(compact.__all__)
    for name in compact.__all__:
        assert getattr(compact, name).__name__ == name
    assert set(compact.__all__) <= set(dir(compact))
    errors = {kind.__name__ for kind in CompactError.__subclasses__()} | {"CompactError"}
    assert errors <= set(compact.__all__)


def test_a_room_is_reachable_after_a_plain_import() -> None:
    code = "import compact; print(compact.hygiene.clean([{'role': 'user', 'content': 'hi'}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "hi" in done.stdout
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = compact.nonsense  # type: ignore[attr-defined]


def test_importing_the_package_loads_no_third_party_module() -> None:
    code = (
        "import sys; before = set(sys.modules); import compact; "
        "print(sorted(m.split('.')[0] for m in set(sys.modules) - before if 'compact' not in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert loaded <= set(sys.stdlib_module_names), loaded - set(sys.stdlib_module_names)


def test_an_error_carries_its_code_hint_and_numbers_also_through_a_process_pool() -> None:
    error = InsufficientBudget("too much", hint="Pin less", needed=10, budget=5)
    again = pickle.loads(pickle.dumps(error))
    for one in (error, again):
        assert (one.code, one.hint, one.needed, one.budget) == ("InsufficientBudget", "Pin less", 10, 5)
        assert str(one) == "too much. Pin less"
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = error.missing


def test_a_missing_extra_says_the_install_line() -> None:
    assert "pip install 'compact-context[s3]'" in str(MissingExtra.named("s3", "The S3 archive"))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_public_functions_have_docstrings_and_files_can_be_read_in_a_sitting(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 500, "split it"
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inner = {id(child) for node in functions for child in ast.walk(node) if child is not node}
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_") or id(node) in inner or _in_private_class(node, tree):
            continue
        assert ast.get_docstring(node), f"{node.name} (line {node.lineno}) has no docstring"


def _in_private_class(node: ast.AST, tree: ast.Module) -> bool:
    private = [
        each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name.startswith("_")
    ]
    return any(child is node for each in private for child in ast.walk(each))


def test_the_error_tree_in_the_docstring_is_the_real_one() -> None:
    from compact import errors

    drawn = [line.split()[1] for line in (inspect.getdoc(errors) or "").splitlines() if "── " in line]
    assert drawn == [kind.__name__ for kind in CompactError.__subclasses__()]
