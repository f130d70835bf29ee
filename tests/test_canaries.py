"""Two hundred secrets of thirty kinds go through every exit, and not one of them is found in any file, event, log or error."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.engine import Clock, pair, says, user
from support.redaction import letters

from compact import CompactConfig, CompactError, CompactManager
from compact.archive.recall import run
from compact.summaries.request import SummaryRequest

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

LOWER_HEX = "0123456789abcdef"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
KINDS: dict[str, str] = {
    "openai": "sk-proj-{a40}",
    "anthropic": "sk-ant-api03-{a60}",
    "aws id": "AKIA{u16}",
    "aws secret": "aws_secret_access_key={a40}",
    "github": "ghp_{a36}",
    "github fine": "github_pat_{a22}_{a59}",
    "gitlab": "glpat-{a20}",
    "slack": "xoxb-{d12}-{d12}-{a24}",
    "slack hook": "https://hooks.slack.com/services/T{u8}/B{u8}/{a24}",
    "stripe": "sk_live_{a24}",
    "npm": "npm_{a36}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{a60}",
    "google": "AIza{a35}",
    "huggingface": "hf_{a34}",
    "sendgrid": "SG.{a22}.{a43}",
    "twilio": "twilio_auth_token: {h32}",
    "digitalocean": "dop_v1_{h64}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJ{a30}.{a43}",
    "bearer": "Authorization: Bearer {a40}",
    "basic": "https://deploy:{a24}@git.example.com/repo.git",
    "postgres": "postgresql://app:{a24}@db.internal:5432/prod",
    "mongodb": "mongodb+srv://app:{a24}@cluster0.example.net/prod",
    "password": "password={a20}",
    "yaml": "db_password: {a20}",
    "json": '{{"api_key": "{a32}"}}',
    "env": "export SECRET_TOKEN={a32}",
    "flag": "--password {a20}",
    "sql": "CREATE USER app WITH PASSWORD '{a20}'",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\n{a64}\n{a64}\n-----END RSA PRIVATE KEY-----",
    "torn pem": "-----BEGIN PRIVATE KEY-----\n{a64}\n{a64}",
    "azure": "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={a86}==;EndpointSuffix=core.windows.net",
}


def planted() -> list[tuple[str, str]]:
    """Texts with a secret in each, and the secret part itself."""
    found = []
    for number in range(200):
        kind = list(KINDS)[number % len(KINDS)]
        values: dict[str, str] = {}
        for size in (8, 12, 16, 20, 22, 24, 30, 32, 34, 35, 36, 40, 43, 59, 60, 64, 86):
            values[f"a{size}"] = letters(f"{kind}{number}a{size}", size)
            values[f"u{size}"] = letters(f"{kind}{number}u{size}", size, UPPER)
            values[f"d{size}"] = letters(f"{kind}{number}d{size}", size, "123456789")
            values[f"h{size}"] = letters(f"{kind}{number}h{size}", size, LOWER_HEX)
        text = KINDS[kind].format(**values)
        secret = max((v for v in values.values() if v in text), key=len)
        found.append((text, secret))
    return found


def session_of(canaries: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Secrets everywhere: system prompt, user text, assistant text, arguments, results, tool names' neighbours."""
    items: list[dict[str, Any]] = [{"role": "system", "content": f"Use {canaries[0][0]}"}]
    for n, (text, _) in enumerate(canaries):
        where = n % 5
        if where == 0:
            items += [user(f"Here is the key: {text}"), says("Thanks, noted.")]
        elif where == 1:
            items += [user("Go on."), says(f"I will use {text} for that. {'More words. ' * 20}")]
        elif where == 2:
            items += pair(f"c{n}", f"line one\n{text}\nline three\n" * 4)
        elif where == 3:
            arguments = json.dumps({"path": "a.env", "content": f"{text}\n" * 8 + "x = 1\n" * 60})
            items += pair(f"c{n}", "written", name="write_file", arguments=arguments)
        else:
            split = (
                {"type": "text", "text": text[: len(text) // 2]},
                {"type": "text", "text": text[len(text) // 2 :]},
            )
            items += [{"role": "user", "content": list(split)}, says("ok")]
    return items


@pytest.mark.parametrize("model_writes", [False, True])
def test_no_secret_leaves_through_any_exit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, model_writes: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    canaries = planted()
    exported: list[Any] = []
    asked: list[SummaryRequest] = []

    def leaky(request: SummaryRequest) -> str:
        asked.append(request)
        return "The user gave " + " and ".join(text for text, _ in canaries[:30])

    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=16_000,
        archive={"adapter": "fs", "root": str(tmp_path / "archive")},
        offload={"large_result_tokens": 300},
    )
    made = CompactManager(
        config, summarizer=leaky if model_writes else None, exporters=[exported.append], clock=Clock()
    )
    items = session_of(canaries)
    session_id = f"run-{canaries[4][0]}"
    done = 0
    for stop in range(20, len(items), 20):
        if items[stop]["role"] == "tool":
            continue
        done = stop
        made.preflight(session_id, items[:stop])
    made.manual_compact(session_id, items[:done], note=f"because {canaries[3][0]}")
    shown = [
        made.process_tool_result(f"{text}\n" * 200, "query", text, session_id) for text, _ in canaries[::9]
    ]
    tools = made.recovery_tools(session_id)
    shown += [
        run(tools, "ls", {"path": "/tool_outputs/"}),
        run(tools, "grep", {"pattern": "(?i)key|password|token"}),
    ]
    shown += [run(tools, "search", {"query": "password key token secret"})]
    errors = []
    for bad in ([user("x"), {"role": canaries[7][0], "content": 3}], [{"nothing": canaries[8][0]}]):
        try:
            made.preflight(session_id, bad)
        except CompactError as problem:
            errors.append(str(problem))
    made.close()
    listing = subprocess.run(
        [
            sys.executable,
            "-m",
            "compact",
            "archive",
            "ls",
            "--root",
            str(tmp_path / "archive"),
            "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.archive.steps(session_id), "nothing was archived: the test would prove nothing"
    assert exported
    assert asked if model_writes else not asked
    exits = {
        "files": "\n".join(
            f"{path.name}\n{path.read_bytes().decode('utf-8', 'replace')}"
            for path in sorted(tmp_path.rglob("*"))
            if path.is_file()
        ),
        "file names": "\n".join(str(path) for path in tmp_path.rglob("*")),
        "exported events": json.dumps(exported),
        "logs": caplog.text,
        "tools and pointers": "\n".join(map(str, shown)),
        "summarizer": "\n".join(
            f"{request.previous} {m.text} {[c.arguments_text for c in m.calls]} {[r.text for r in m.results]}"
            for request in asked
            for m in request.messages
        ),
        "errors": "\n".join(errors),
        "command": listing.stdout,
    }
    leaks = [(where, secret) for where, text in exits.items() for _, secret in canaries if secret in text]
    assert leaks == []
    assert any(canaries[1][0] in json.dumps(item) for item in items), "the host's own messages are untouched"


@pytest.mark.sweep
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_restore_of_every_shared_transcript_equals_the_redacted_original(every: int) -> None:
    from support.data import all_sessions
    from support.engine import manager

    from compact.redaction import Redactor

    made = manager()
    for session in all_sessions()[::every]:
        attempt = made.archive.begin(session["id"], session["messages"], dialect="chat", after=0)
        attempt.commit(summary={}, state={})
        restored = made.archive.restore(session["id"])
        assert restored.messages == Redactor().session().redact_messages(session["messages"])
