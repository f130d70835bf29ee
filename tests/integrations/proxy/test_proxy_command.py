"""`compact proxy` and `compact doctor` as people start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.proxying import KEY, body_of, long_talk
from support.wire import Wire, WireRequest, wired

import compact

COMMAND = [sys.executable, "-m", "compact"]
SOURCE = str(Path(compact.__file__).parents[1])


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE, **more}


def answer(wire: Wire, _: WireRequest) -> None:
    wire.answer(b"{}", content_type="application/json")


def test_the_command_serves_the_viewer_beside_the_proxy_and_each_asks_for_its_own_right(
    tmp_path: Path,
) -> None:
    arguments = ["proxy", "--port", "0", "--archive", str(tmp_path / "archive")]
    with wired(answer) as upstream:
        given = environment(COMPACT_PROXY__ANTHROPIC_URL=f"{upstream.url}/v1/")
        with subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=given,
            cwd=tmp_path,
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stderr is not None
                url = process.stdout.readline().split()[-1]
                page = process.stderr.readline().split()[-1]
                sent = httpx.post(
                    f"{url}/v1/messages", content=body_of(long_talk(2)), headers=KEY, timeout=60
                )
                closed = httpx.get(f"{url}/compact/")
                with httpx.Client(follow_redirects=True) as client:
                    shown = client.get(page)
                    script = client.get(f"{url}/compact/page/main.js")
                    listed = client.get(f"{url}/compact/api/sessions").json()
            finally:
                process.kill()
    assert sent.status_code == 200
    assert upstream.requests[0].path == "/v1/messages"
    assert closed.status_code == 401
    assert (shown.status_code, script.status_code) == (200, 200)
    assert '<script type="module" src="page/main.js">' in shown.text
    assert listed["archive"] == str(tmp_path / "archive")


def test_an_address_of_other_machines_is_refused_with_the_reason(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "proxy", "--host", "0.0.0.0", "--port", "0"],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "COMPACT_PROXY__TOKEN" in done.stderr


@pytest.mark.parametrize("reachable", [True, False])
def test_the_doctor_says_what_is_wrong(reachable: bool, tmp_path: Path) -> None:
    with wired(answer) as upstream:
        urls = {f"COMPACT_PROXY__{name}_URL": upstream.url for name in ("ANTHROPIC", "OPENAI", "GEMINI")}
        if not reachable:
            urls["COMPACT_PROXY__OPENAI_URL"] = "http://127.0.0.1:1"
        done = subprocess.run(
            [*COMMAND, "doctor"], capture_output=True, text=True, env=environment(**urls), cwd=tmp_path
        )
    lines = {" ".join(line.split()[:2]): line for line in done.stdout.splitlines()}
    assert done.returncode == (0 if reachable else 1)
    assert "ok anthropic" in lines
    assert ("ok openai" if reachable else "wrong openai") in lines
    assert "will be made" in lines["ok archive"]
    assert not (tmp_path / ".compact").exists(), "nothing is changed"
