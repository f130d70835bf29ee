"""What the tests of the harness share: artifacts, an independent count, and sessions made of real transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from support.data import all_sessions
from support.tokens import published_encoding

from compact.harness import as_artifacts

Artifact = dict[str, Any]


def system(words: str = "Obey the operator.", **more: Any) -> Artifact:
    return {"kind": "system", "content": words, **more}


def task(words: str = "Sort the mail.", **more: Any) -> Artifact:
    return {"kind": "task", "content": words, **more}


def message(words: str, **more: Any) -> Artifact:
    return {"kind": "message", "content": words, **more}


def output(words: str, **more: Any) -> Artifact:
    return {"kind": "tool_output", "content": words, **more}


def independent_count(artifacts: Sequence[Any]) -> int:
    """The documented formula over tiktoken as it is published, without any of our counting code.

    1 for an artifact, 1 and its tokens for each of its strings, 3 for the reply.
    """
    encode = published_encoding("o200k_base").encode_ordinary
    total = 3 if artifacts else 0
    for artifact in artifacts:
        strings = [artifact["content"], *([artifact["title"]] if artifact.get("title") else [])]
        total += 1 + sum(1 + len(encode(_whole(text))) for text in strings)
    return total


@cache
def real_artifacts() -> tuple[tuple[str, list[Artifact]], ...]:
    """Every real session at hand, as artifacts."""
    return tuple(
        (session["id"], [dict(one) for one in as_artifacts(session["messages"])])
        for session in all_sessions()
    )


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
