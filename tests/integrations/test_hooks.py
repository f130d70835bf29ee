"""The plain hook: any object with `session_id` and `messages`."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from support.engine import turns
from support.integrations import agent_manager

from compact.checks import violations
from compact.integrations.hooks import abefore_model_call, before_model_call


def test_the_literal_form_of_the_compaction_specification_works() -> None:
    manager, _ = agent_manager(4_000, guard={"min_context_tokens": 1000})

    def hook(ctx: Any) -> None:
        ctx.messages = manager.preflight(ctx.session_id, ctx.messages)

    ctx = SimpleNamespace(session_id="s", messages=turns(20))
    with manager:
        hook(ctx)
    assert len(ctx.messages) < 40
    assert violations(ctx.messages) == []


def test_the_ready_made_hook_does_the_same_sync_and_async_and_counts_what_it_sees() -> None:
    manager, seen = agent_manager(4_000, guard={"min_context_tokens": 1000})
    given = turns(20)
    first = SimpleNamespace(session_id="a", messages=given, tools=[{"name": "t"}], system="You are kind.")
    second = SimpleNamespace(session_id="b", messages=given, tools=[{"name": "t"}], system="You are kind.")
    with manager:
        before_model_call(manager)(first)
        asyncio.run(abefore_model_call(manager)(second))
    assert first.messages == second.messages
    assert len(first.messages) < 40
    shares = seen.named("token_estimate")[0]["properties"]["breakdown"]
    assert shares["system"] > 0 < shares["tools_schema"]
