"""`python -m bench`: every benchmark on one page; `python -m bench tokens`: those whose name contains the word."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import bench
from bench import Figure
from compact.errors import MissingExtra


def main(words: list[str]) -> int:
    """Run what was asked for; 1 if a target was missed or nothing has that name."""
    print(f"compact benchmarks, Python {platform.python_version()} on {platform.machine()}\n")
    found = missed = 0
    for name, function in _benchmarks(words):
        found += 1
        print(f"{name}: {(function.__doc__ or '').strip()}")
        try:
            figures = _as_list(function())
        except MissingExtra as problem:
            print(f"  SKIP  {problem}")
            continue
        for figure in figures:
            print(f"  {figure}")
            missed += not figure.passed
    print(f"\n{found} benchmarks, {missed} targets missed" if found else f"no benchmark is named {words}")
    return 1 if missed or not found else 0


def _benchmarks(words: list[str]) -> Iterator[tuple[str, Callable[[], Figure | Iterable[Figure]]]]:
    for module in _modules():
        for attribute, function in vars(module).items():
            name = f"{module.__name__.removeprefix('bench.')}.{attribute.removeprefix('bench_')}"
            if attribute.startswith("bench_") and (not words or any(word in name for word in words)):
                yield name, function


def _modules() -> list[ModuleType]:
    names = sorted(entry.name for entry in iter_modules(bench.__path__) if not entry.name.startswith("_"))
    return [import_module(f"bench.{name}") for name in names]


def _as_list(figures: Figure | Iterable[Figure]) -> list[Figure]:
    return [figures] if isinstance(figures, Figure) else list(figures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
