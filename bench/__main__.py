"""`python -m bench` runs every benchmark; `python -m bench tokens` runs those whose name contains the word."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from textwrap import indent
from types import ModuleType

import bench
from bench import Figure, Skipped, run_to_end, wrapped
from compact.errors import MissingExtra

Benchmark = Callable[[], Figure | Iterable[Figure]]


def main(words: list[str]) -> int:
    """Run the named benchmarks. Returns 1 if a target was missed.

    Raises:
        SystemExit: a word is in no benchmark's name (exit code 2).
    """
    chosen = _chosen(words)
    print(f"compact benchmarks, Python {platform.python_version()} on {platform.machine()}\n")
    missed: list[str] = []
    skipped = 0
    for name, function in chosen.items():
        print(wrapped(f"{name}: {(function.__doc__ or '').strip()}", 6), flush=True)
        try:
            for figure in _figures(function()):
                print(indent(str(figure), "  "), flush=True)
                if not figure.passed:
                    missed.append(f"{name}: {figure.label}")
        except (MissingExtra, Skipped) as problem:
            print(indent(wrapped(f"SKIP  {problem}", 6), "  "))
            skipped += 1
        except Exception as problem:
            said = f"{name}: {type(problem).__name__}: {problem}"
            print(f"  FAIL  {said}")
            missed.append(said)
    print(f"\n{len(chosen)} benchmarks, {skipped} skipped, {len(missed)} targets missed")
    for line in missed:
        print(indent(wrapped(line, 6), "  "))
    return 1 if missed else 0


def _chosen(words: list[str]) -> dict[str, Benchmark]:
    known = dict(benchmarks())
    names = "\n".join(f"  {name}" for name in known)
    asked = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"{__doc__}\n\n{bench.__doc__}",
        epilog=f"names:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument("words", nargs="*", metavar="name", help="a name or a part of it; none: all of them")
    given: list[str] = asked.parse_args(words).words
    for word in given:
        if not any(word in name for name in known):
            asked.error(f"no benchmark is named {word!r}; known:\n{names}")
    return {name: one for name, one in known.items() if not given or any(word in name for word in given)}


def benchmarks() -> Iterator[tuple[str, Benchmark]]:
    """Yield every benchmark with its name."""
    for module in _modules():
        for attribute, function in vars(module).items():
            if attribute.startswith("bench_"):
                yield f"{module.__name__.removeprefix('bench.')}.{attribute.removeprefix('bench_')}", function


def _modules() -> list[ModuleType]:
    names = sorted(entry.name for entry in iter_modules(bench.__path__) if not entry.name.startswith("_"))
    return [import_module(f"bench.{name}") for name in names]


def _figures(made: Figure | Iterable[Figure]) -> Iterable[Figure]:
    return [made] if isinstance(made, Figure) else made


if __name__ == "__main__":
    run_to_end(lambda: main(sys.argv[1:]))
