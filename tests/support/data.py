"""Real sessions for tests: a few in the repo, many more beside it where they are."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

TESTS = Path(__file__).resolve().parents[1]
FIXTURES = TESTS / "fixtures"
SHARED = TESTS.parent.parent / "shared"


@cache
def bundled_sessions() -> tuple[dict[str, Any], ...]:
    """Eleven real sessions, small enough for every test run."""
    return tuple(_sessions(FIXTURES / "transcripts" / "sessions.jsonl.gz"))


@cache
def all_sessions() -> tuple[dict[str, Any], ...]:
    """Hundreds of real sessions where the shared data lies beside the repo, else the bundled ones."""
    files = sorted((SHARED / "data" / "transcripts").glob("*.jsonl.gz"))
    return tuple(session for file in files for session in _sessions(file)) or bundled_sessions()


def shared_file(*parts: str) -> Path:
    """A file of the shared data; the test is skipped where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared data is not beside the repo: {'/'.join(parts)}")
    return path


@cache
def responses_lists() -> tuple[list[dict[str, Any]], ...]:
    """Every list of Responses items in the recorded cassettes: inputs, and inputs with their outputs."""
    found = []
    for file in sorted((FIXTURES / "raw").glob("responses_*.yaml.gz")):
        for exchange in yaml.safe_load(gzip.decompress(file.read_bytes()))["interactions"]:
            sent = exchange["request"]["parsed_body"]["input"]
            answered = exchange["response"]["parsed_body"].get("output") or []
            found += [sent, answered, [*sent, *answered]]
    return tuple(items for items in found if items)


@cache
def claude_code_messages() -> tuple[dict[str, Any], ...]:
    """Every Anthropic message inside the Claude Code files, line by line."""
    found = []
    for file in sorted((FIXTURES / "raw").glob("c*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).decode().splitlines():
            entry = json.loads(line)
            message = entry.get("message") if isinstance(entry, dict) else None
            if isinstance(message, dict) and "content" in message:  # one line has it misspelt
                found.append(message)
    return tuple(found)


@cache
def reference_cases(*areas: str) -> tuple[dict[str, Any], ...]:
    """The reference cases of these areas."""
    data = yaml.safe_load((FIXTURES / "cases" / "openclaw.yaml").read_text())
    return tuple(case for case in data["cases"] if not areas or case["area"] in areas)


def _sessions(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
