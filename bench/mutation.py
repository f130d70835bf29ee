"""Mutation testing of the pure core: `make mutation`, or `python -m bench.mutation --files cuts --sample 20`.

A mutant is one small change of one file: a comparison reversed or shifted by one, `and` for `or`, a condition negated, a
number one larger, a flag flipped, an operator exchanged, a statement left out. It is killed when a test of that file fails.
Only the tests that belong to the file run, for each mutant in a separate process and copy of the source, with a time limit.
Property tests and sweeps over many sessions are left out, because a plain test should notice the same change and two runs
must give the same verdicts. The sample is drawn with a fixed seed; `--sample 0`
tries all.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench import run_to_end, whole_number

REPO = Path(__file__).resolve().parents[1]
PACKAGE = REPO / "src" / "compact"
TARGET = 0.80
SAMPLE = 25
SEED = 7

_PROMISES = (
    "tests/engine/test_compaction_specification.py",
    "tests/engine/test_stages.py",
    "tests/engine/test_context_compaction_prd.py",
    "tests/engine/test_hard_sessions.py",
)
TESTS: dict[str, tuple[str, ...]] = {
    "engine/limits.py": ("tests/engine/test_limits.py",),
    "messages/units.py": ("tests/messages/test_units.py",),
    "messages/legality.py": ("tests/messages/test_legality.py",),
    "messages/hygiene/repair.py": ("tests/messages/hygiene",),
    "messages/hygiene/sanitizing.py": ("tests/messages/hygiene",),
    "messages/hygiene/turn_limit.py": ("tests/messages/hygiene",),
    "engine/state.py": ("tests/engine/test_state.py",),
    "engine/plan.py": ("tests/engine/test_plan.py", "tests/engine/test_compaction_specification.py"),
    "engine/ladder.py": (
        "tests/engine/test_passes.py",
        "tests/engine/test_line.py",
        *_PROMISES,
        "tests/engine/test_hosts.py",
    ),
    "engine/line.py": (
        "tests/engine/test_line.py",
        *_PROMISES,
        "tests/engine/test_hosts.py",
        "tests/engine/test_observe.py",
        "tests/engine/test_faults.py",
        "tests/engine/test_progressive_addendum.py",
    ),
}
"""The files of the core, and the tests that must notice a change in them."""

_PLUGINS = ("pytest_timeout", "pytest_cov", "_hypothesis_pytestplugin")
"""The plugins that the settings and marks of the suite need. Loading all installed plugins takes longer than most tests."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the whole changed source, and what was changed where."""

    file: str
    line: int
    change: str
    source: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict of the tests on a mutant."""

    mutant: Mutant
    verdict: str
    """`killed`, `time limit` (a mutant that hangs counts as noticed) or `survived`."""

    @property
    def noticed(self) -> bool:
        """Whether the tests failed or hung."""
        return self.verdict != "survived"


def mutants(file: str, source: str) -> list[Mutant]:
    """Every mutant of a source, in the order of its lines."""
    return sorted(made_from(file, source), key=lambda mutant: (mutant.line, mutant.change))


def made_from(file: str, source: str) -> Iterator[Mutant]:
    """Yield the mutants of a source. Each is written out on demand."""
    tree = ast.parse(source)
    left_out = {id(inner) for node in ast.walk(tree) for part in _not_logic(node) for inner in ast.walk(part)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in left_out:
            continue
        for number, change in enumerate(_changes(node)):
            twin = copy.deepcopy(tree)
            target = next(inner for at, inner in enumerate(ast.walk(twin)) if at == place)
            list(_changes(target, apply=number))
            changed = ast.unparse(ast.fix_missing_locations(twin))
            yield Mutant(file, getattr(node, "lineno", 0), change, changed)


def _not_logic(node: ast.AST) -> Iterator[ast.AST]:
    """Skip annotations, which do not run, and flags of decorators (frozen, slots), which only say how a class is stored."""
    yield from getattr(node, "decorator_list", ())
    for name in ("annotation", "returns"):
        part = getattr(node, name, None)
        if isinstance(part, ast.AST):
            yield part


def _changes(node: ast.AST, apply: int | None = None) -> Iterator[str]:
    """List the changes that a node allows, and apply the one numbered `apply`."""
    for number, (change, made) in enumerate(_possible(node)):
        if number == apply:
            for name, value in made.items():
                setattr(node, name, value)
        yield change


def _possible(node: ast.AST) -> Iterator[tuple[str, dict[str, object]]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            other = _COMPARISONS[type(op)]
            yield f"{type(op).__name__} -> {other.__name__}", {"ops": [other()]}
        case ast.BoolOp(op=ast.And()):
            yield "and -> or", {"op": ast.Or()}
        case ast.BoolOp():
            yield "or -> and", {"op": ast.And()}
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "condition negated", {"test": ast.UnaryOp(ast.Not(), test)}
        case ast.BinOp(op=op) if type(op) in _OPERATIONS:
            other_op = _OPERATIONS[type(op)]
            yield f"{type(op).__name__} -> {other_op.__name__}", {"op": other_op()}
        case ast.Constant(value=bool() as flag):
            yield f"{flag} -> {not flag}", {"value": not flag}
        case ast.Constant(value=int() as number):
            yield f"{number} -> {number + 1}", {"value": number + 1}
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return -> return None", {"value": ast.Constant(None)}
        case ast.Expr(value=ast.Call()):
            yield "call left out", {"value": ast.Constant(None)}
        case ast.AugAssign(op=op) if type(op) in _OPERATIONS:
            other_op = _OPERATIONS[type(op)]
            yield f"{type(op).__name__}= -> {other_op.__name__}=", {"op": other_op()}


def verdict_on(mutant: Mutant | None, tests: tuple[str, ...], limit: float) -> str:
    """Test a copy of the source with the mutant in it; None tests the unchanged source."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder) / "compact", ignore=shutil.ignore_patterns("__pycache__"))
        if mutant:
            (Path(folder) / "compact" / mutant.file).write_text(mutant.source, encoding="utf-8")
        places = (folder, REPO / "tests", REPO)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, places)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        plugins = [word for name in (*_PLUGINS, "no:cacheprovider") for word in ("-p", name)]
        chosen = ["-m", "not slow and not sweep and not hypothesis"]
        words = ["-q", "-x", "--no-header", "--tb=no", *plugins, *chosen, *tests]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *words],
                capture_output=True, cwd=REPO, env=environment, timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "time limit"
    return "survived" if done.returncode == 0 else "killed"


def run(file: str, sample: int, workers: int, seed: int = SEED) -> list[Outcome]:
    """The mutants of one file.

    Raises:
        SystemExit: its tests fail without any change.
    """
    tests = TESTS[file]
    began = time.monotonic()
    if verdict_on(None, tests, 1_800) != "survived":
        raise SystemExit(f"{file}: the tests fail without a mutant: {' '.join(tests)}")
    limit = 4 * (time.monotonic() - began) + 30
    source = (PACKAGE / file).read_text(encoding="utf-8")
    every = mutants(file, source)
    chosen = every if not sample else sorted(
        random.Random(seed).sample(every, min(sample, len(every))), key=lambda mutant: mutant.line
    )  # fmt: skip
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(workers) as pool:
        verdicts = pool.map(lambda mutant: verdict_on(mutant, tests, limit), chosen)
        for mutant, verdict in zip(chosen, verdicts, strict=True):
            outcomes.append(Outcome(mutant, verdict))
            if not outcomes[-1].noticed:
                line = source.splitlines()[mutant.line - 1].strip()
                print(f"  survived  {file}:{mutant.line}  {mutant.change}  | {line}", flush=True)
    noticed = sum(outcome.noticed for outcome in outcomes)
    print(f"{file:<24} {noticed:>4} of {len(outcomes)} killed ({len(every)} possible)", flush=True)
    return outcomes


def main() -> int:
    """Return 1 if fewer mutants were killed than the target requires."""
    asked = argparse.ArgumentParser(prog="python -m bench.mutation", description=__doc__)
    asked.add_argument("--files", default=",".join(TESTS))
    asked.add_argument("--sample", type=whole_number(0), default=SAMPLE, help="mutants for each file; 0: all")
    asked.add_argument("--seed", type=int, default=SEED, help="another seed tries other mutants")
    asked.add_argument("--workers", type=whole_number(1), default=os.cpu_count() or 1)
    given = asked.parse_args()
    words = given.files.split(",")
    unknown = [word for word in words if not word or not any(word in file for file in TESTS)]
    if unknown:
        asked.error(f"no such file: {', '.join(unknown)}; known: {', '.join(TESTS)}")
    wanted = [file for file in TESTS if any(word in file for word in words)]
    outcomes = [outcome for file in wanted for outcome in run(file, given.sample, given.workers, given.seed)]
    score = sum(outcome.noticed for outcome in outcomes) / max(1, len(outcomes))
    print(f"{score:.0%} of {len(outcomes)} mutants killed (target {TARGET:.0%})")
    return 0 if outcomes and score >= TARGET else 1


if __name__ == "__main__":
    run_to_end(main)
