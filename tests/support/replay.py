"""What the tests of replay share: small sessions, policies, and a way to play them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.engine import Item, pair, says, user

from compact import CompactConfig
from compact.tokens.prices import built_in
from compact.tools.replay import Job, Played, Policy, play
from compact.tools.transcripts import RecordedSession


def policy(name: str = "p", window: int = 8_000, **settings: Any) -> Policy:
    return Policy(name, CompactConfig(model="gpt-4o", max_context_tokens=window, **settings))


def session(messages: list[Item], name: str = "s", **more: Any) -> RecordedSession:
    return RecordedSession(id=name, messages=messages, format="messages", **more)


def played(messages: list[Item], *policies: Policy, **more: Any) -> Played:
    chosen = policies or (policy(),)
    keep = more.pop("keep_requests", False)
    return play(
        Job(
            file="f",
            session=session(messages, **more),
            policies=chosen,
            prices=built_in(),
            keep_requests=keep,
        )
    )


def long_session(turns: int = 30, words: int = 120) -> list[Item]:
    """A system prompt, then turns of a question, a read file and an answer; each different."""
    found: list[Item] = [{"role": "system", "content": "Obey the operator in all things."}]
    for n in range(turns):
        text = " ".join(f"line{n}x{k} of the file" for k in range(words))
        found.append(user(f"Look at module_{n}.py please."))
        found += pair(f"c{n}", text, arguments=f'{{"path": "src/module_{n}.py"}}')
        found.append(says(f"Module {n} is fine."))
    return found


def write_lines(file: Path, sessions: list[list[Item]]) -> Path:
    """A file with one session a line."""
    lines = (json.dumps({"id": f"s{n}", "messages": messages}) for n, messages in enumerate(sessions))
    file.write_text("\n".join(lines))
    return file
