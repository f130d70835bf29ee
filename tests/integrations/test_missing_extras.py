"""Without its framework an integration says which extra is missing, and nothing else is disturbed."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("openai_agents", "agents", "agents"),
        ("langchain", "langchain", "langchain"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("litellm", "litellm", "litellm"),
    ],
)
def test_a_missing_framework_names_its_extra(module: str, package: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from compact import MissingExtra\n"
        f"try: import compact.integrations.{module}\n"
        "except MissingExtra as problem: print(problem.extra, '|', problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, _, text = done.stdout.partition(" | ")
    assert found == extra
    assert f"pip install 'compact-context[{extra}]'" in text


def test_a_release_of_pydantic_ai_that_asks_no_capability_is_refused() -> None:
    """Its agents would run, and their requests would pass compact by."""
    code = (
        "from pydantic_ai.capabilities import AbstractCapability\n"
        "del AbstractCapability.get_wrapper_model\n"
        "from compact import MissingExtra\n"
        "try: import compact.integrations.pydantic_ai\n"
        "except MissingExtra as problem: print(problem.extra)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pydantic-ai"
