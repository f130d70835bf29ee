"""Real agents from npm, each in a home of its own, through the proxy to a strict stand-in: sixty turns and more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.proxying import proxying

from compact.tools.standins import Call, Provider, Received, Reply, prefix_breaks, serving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PACKAGES = ("@anthropic-ai/claude-code", "@openai/codex", "opencode-ai")
TURNS = 64
ORDER = "Do the job. Never delete anything."
SHELLS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "Bash": lambda line: {"command": line, "description": "Counts"},
    "bash": lambda line: {"command": line, "description": "Counts"},
    "exec_command": lambda line: {"cmd": line},
    "shell": lambda line: {"command": ["bash", "-lc", line]},
}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the agents' programs: the one that COMPACT_TEST_NPM names, or a new one that npm fills."""
    given = os.environ.get("COMPACT_TEST_NPM")
    if given is not None:
        return Path(given) / "node_modules" / ".bin"
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is missing")
    folder = tmp_path_factory.mktemp("npm")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
    done = subprocess.run(
        command, env={**os.environ, "HOME": str(folder)}, capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        pytest.skip(f"npm cannot install the agents here: {done.stderr[-200:]}")
    return folder / "node_modules" / ".bin"


class Script:
    """A model that runs a command in every turn, and then says that it is done."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self.done = 0

    def __call__(self, request: Received) -> Reply:
        tools = request.body.get("tools") or []
        names = [tool.get("name") or tool.get("function", {}).get("name") for tool in tools]
        shell = next((name for name in SHELLS if name in names), None)
        if shell is None:
            return Reply("Counting")
        thinks = request.body.get("thinking", {}).get("type") in ("enabled", "adaptive")
        self.done += 1
        line = f"seq {self.done * 1000} {self.done * 1000 + 400}"
        calls = [Call(shell, SHELLS[shell](line))] if self.done <= self._turns else []
        text = f"Step {self.done}." if calls else "All done."
        return Reply(text, calls, thinking="I count on." if thinks else "")


def claude(programs: Path, url: str, home: Path) -> tuple[list[str], dict[str, str]]:
    command = [
        str(programs / "claude"),
        "-p",
        ORDER,
        "--model",
        "claude-sonnet-4-5",
        "--dangerously-skip-permissions",
    ]
    settings = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTO_COMPACT": "1",
        "IS_SANDBOX": "1",
    }
    return command, settings


def codex(programs: Path, url: str, home: Path) -> tuple[list[str], dict[str, str]]:
    settings = f"""
model = "gpt-5"
model_provider = "here"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.here]
name = "here"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
"""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(settings)
    return [str(programs / "codex"), "exec", "--skip-git-repo-check", ORDER], {"OPENAI_API_KEY": "none"}


def opencode(programs: Path, url: str, home: Path) -> tuple[list[str], dict[str, str]]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"gpt-4o": {"limit": {"context": 400_000, "output": 8_000}}},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "provider": {"here": provider},
        "small_model": "here/gpt-4o",
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings))
    return [str(programs / "opencode"), "run", "--model", "here/gpt-4o", ORDER], {
        "OPENCODE_DISABLE_MODELS_FETCH": "1"
    }


AGENTS = {"claude": (claude, 70_000), "codex": (codex, 32_000), "opencode": (opencode, 32_000)}
"""How each is started, and a window that its session outgrows several times."""


def run(name: str, programs: Path, url: str, folder: Path) -> str:
    """Run an agent to its end, with nothing but its address in common with this machine's user."""
    home, place = folder / "home", folder / "work"
    home.mkdir(parents=True)
    place.mkdir()
    command, settings = AGENTS[name][0](programs, url, home)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **settings}
    done = subprocess.run(
        command,
        env=environment,
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def main_requests(provider: Provider) -> list[Received]:
    return [request for request in provider.accepted if request.body.get("tools")]


@pytest.mark.parametrize("name", AGENTS)
def test_a_long_session_outgrows_its_window_and_no_refusal_reaches_the_agent(
    name: str, programs: Path, tmp_path: Path
) -> None:
    window = AGENTS[name][1]
    script = Script(TURNS)
    with (
        serving(script, window=window) as provider,
        proxying(provider.url, tmp_path / "archive", window) as proxy,
    ):
        said = run(name, programs, proxy.url, tmp_path)
        steps = sum(len(proxy.manager.archive.steps(each)) for each in proxy.manager.archive.sessions())
        assert proxy.app.metrics.value("upstream_failures") == 0
    assert "All done." in said
    assert script.done == TURNS + 1, "every turn was answered once"
    assert provider.refused == []
    assert steps >= 3
    assert prefix_breaks(main_requests(provider)) <= steps


@pytest.mark.parametrize("name", AGENTS)
def test_below_the_trigger_the_provider_sees_what_it_sees_without_the_proxy(
    name: str, programs: Path, tmp_path: Path
) -> None:
    """The same requests, but for what an agent makes anew in every run: ids, times and its own folders."""
    shapes = []
    for through in (False, True):
        with serving(Script(3)) as provider, proxying(provider.url, tmp_path / f"archive{through}") as proxy:
            said = run(name, programs, proxy.url if through else provider.url, tmp_path / str(through))
            assert proxy.app.metrics.value("edited") == 0
        assert "All done." in said
        assert provider.refused == []
        found = main_requests(provider)
        shapes.append([(sorted(each.body), len(each.messages), each.body.get("stream")) for each in found])
    assert shapes[0] == shapes[1]
