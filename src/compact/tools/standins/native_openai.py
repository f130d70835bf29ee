"""OpenAI's compaction: the endpoint `/v1/responses/compact`, the item `compaction_trigger`, and `context_management`.

Pages of developers.openai.com/api: docs/guides/compaction, reference/resources/responses/methods/compact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from compact.tools.standins.problems import Item, Problem, Rules
from compact.tools.standins.responses_rules import find_problems
from compact.tools.standins.responses_wire import RESPONSES, compaction, usage_of
from compact.tools.standins.script import Told


def compact_problems(body: Any, rules: Rules | None = None) -> list[Problem]:
    """Every reason why OpenAI refuses the body of `POST /v1/responses/compact`; empty if it accepts it."""
    return find_problems(body, rules)


def _answer(told: Told) -> dict[str, Any]:
    return {
        "id": f"resp_{told.number:04}",
        "object": "response.compaction",
        "created_at": 0,
        "output": [
            *_users(told.body.get("input")),
            *([compaction(told, told.reply.text)] if told.reply.text else []),
        ],
        "usage": usage_of(told),
    }


def _users(items: Any) -> list[Item]:
    """All messages of users, as the provider writes them."""
    listed: Sequence[Any] = [{"role": "user", "content": items}] if isinstance(items, str) else items or ()
    found = []
    for item in listed:
        if item.get("role") == "user" and item.get("type", "message") == "message":
            content = item["content"]
            blocks = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            found.append({"type": "message", "role": "user", "status": "completed", "content": blocks})
    return [{**item, "id": f"msg_u{place}"} for place, item in enumerate(found)]


def _no_stream(_: Told) -> Iterator[str]:
    raise AssertionError("/v1/responses/compact does not stream")


COMPACT = replace(
    RESPONSES, path="/v1/responses/compact", find_problems=compact_problems, answer=_answer, stream=_no_stream
)
