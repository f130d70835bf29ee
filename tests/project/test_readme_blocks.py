"""What the README and the pages show works: every Python block runs, every command line names what exists."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from support.quiet import no_tracing

from compact.tools.cli.app import app
from compact.tools.harness.config import CHECKS, HEURISTICS, RULES
from compact.tools.standins import serving

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
INTEGRATIONS = sorted((ROOT / "docs" / "integrations").glob("*.md"))
BLOCK = re.compile(r"^```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```\s*$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page, and the number of its first line."""

    page: Path
    line: int
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start("text")) + 1, match["text"])
        for match in BLOCK.finditer(text)
        if match["language"] in languages
    ]


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """The words of every command on the pages, each with its place."""
    for page in PAGES:
        for block in blocks(page, "sh", "bash", "console"):
            for number, line in enumerate(block.text.splitlines(), block.line):
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words:
                    yield f"{page.name}:{number}", words


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name
)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty folder, as somebody would who pastes one block after the other. Models are the examples' stand-in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    for registry in (RULES, HEURISTICS, CHECKS):  # what a page registers is not there for other tests
        monkeypatch.setattr(registry, "parts", dict(registry.parts))
    with (
        import_module("offline_model").model(calls=1),
        no_tracing(),
        default_loop(),
        serving(["Hi."]) as others,
    ):
        for key in ("GOOGLE_GEMINI_BASE_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"):
            monkeypatch.setenv(key, others.url)
        for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(key, "none")
        run_blocks(page)


@contextmanager
def default_loop() -> Iterator[None]:
    """The `run_sync` of some SDKs takes the thread's event loop, or makes one and leaves it behind for the next time."""
    own = asyncio.new_event_loop()
    asyncio.set_event_loop(own)
    try:
        yield
    finally:
        with suppress(RuntimeError), warnings.catch_warnings(action="ignore"):  # there is none any more
            asyncio.get_event_loop().close()
        own.close()
        asyncio.set_event_loop(None)


def run_blocks(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        at_its_line = "\n" * (block.line - 1) + block.text
        code = compile(at_its_line, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.iscoroutine(result):
            asyncio.run(result)


def test_an_integration_is_switched_on_in_fewer_than_ten_lines() -> None:
    """The first block of its page is all that it takes, imports and a call included."""
    for page in INTEGRATIONS:
        first = blocks(page, "python")[0].text
        assert 0 < sum(bool(line.strip()) for line in first.splitlines()) < 10, page.name


def test_how_to_add_a_part_is_shown_in_fewer_than_thirty_lines() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8")
    section = re.split(r"^### An? |^## ", text.partition("## Adding something")[2], flags=re.MULTILINE)
    for part in ("stage", "dialect", "strategy", "rule", "adapter", "exporter"):
        (found,) = [each for each in section if each.startswith(f"{part}\n")]
        shown = [match["text"] for match in BLOCK.finditer(found) if match["language"] == "python"]
        assert shown, part
        assert all(block.count("\n") < 30 for block in shown), part


def test_every_command_line_names_commands_and_options_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    top: Any = typer.main.get_command(app)
    wrong = []
    for place, (program, *rest) in command_lines():
        if program == "make":
            wrong += [f"{place}: no target {word!r}" for word in rest if word not in targets]
        elif program == "compact":
            command = top
            while hasattr(command, "commands") and rest and rest[0] in command.commands:
                command, rest = command.commands[rest[0]], rest[1:]
            if hasattr(command, "commands"):
                wrong.append(f"{place}: no command {rest[:1]}")
            known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            used = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
            wrong += [f"{place}: no option {option}" for option in sorted(used - known)]
    assert wrong == []


def test_make_help_names_every_target() -> None:
    """`make` alone shows them, each with what it does."""
    text = (ROOT / "Makefile").read_text("utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    assert set(re.findall(r"^([a-z-]+):.*  ## \w", text, re.MULTILINE)) == set(phony.split())
    assert ".DEFAULT_GOAL := help" in text


def test_the_quick_start_is_short_and_the_pages_are_linked() -> None:
    """Ten lines at most, and from the README every page can be reached that the specification asks for."""
    first = blocks(ROOT / "README.md", "python")[0].text
    assert 0 < sum(bool(line.strip()) for line in first.splitlines()) <= 10
    text = (ROOT / "README.md").read_text("utf-8")
    for page in ("ARCHITECTURE", "SECURITY", "OBSERVABILITY", "CONFIG", "API", "REQUIREMENTS"):
        assert f"(docs/{page}.md)" in text


def test_links_and_pictures_lead_to_files_that_exist() -> None:
    dead = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)", BLOCK.sub("", page.read_text("utf-8")))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []


def test_the_readme_shows_both() -> None:
    """The patterns above find something: otherwise nothing would be checked."""
    assert len(blocks(ROOT / "README.md", "python")) >= 2
    shown = [words[:2] for _, words in command_lines()]
    assert ["make", "demo"] in shown
    assert ["compact", "apply"] in shown
