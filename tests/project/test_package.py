"""The package's face: names, layers' promises that a linter cannot see, and what importing it costs."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest

import compact
from compact.errors import CompactError, InsufficientBudget, MissingExtra


def test_the_exported_names_are_complete_and_real() -> None:
    for name in compact.__all__:
        found = getattr(compact, name)
        assert getattr(found, "__name__", name) == name
    assert isinstance(compact.DEFAULT_STAGES, tuple)
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


def test_the_error_tree_in_the_docstring_is_the_real_one() -> None:
    from compact import errors

    lines = [line for line in (inspect.getdoc(errors) or "").splitlines() if "── " in line]
    drawn = [line.partition("── ")[2].split()[0] for line in lines]
    assert drawn == [kind.__name__ for kind in _below(CompactError)]


def _below(kind: type[CompactError]) -> Iterator[type[CompactError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)
