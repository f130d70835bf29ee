"""The plain hook, for any agent loop that passes a context with `session_id` and `messages` before each model call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from compact.integrations.calls import check_manager
from compact.runtime.manager import CompactManager

__all__ = ["abefore_model_call", "before_model_call"]


def before_model_call(manager: CompactManager) -> Callable[[Any], None]:
    """Return a function `hook(ctx)` that replaces `ctx.messages` by what should be sent.

    `ctx.tools` and `ctx.system` are counted if the context has them, and `ctx.model` is the request's model. The hook
    raises as `preflight` does.
    """
    check_manager(manager, "before_model_call")

    def hook(ctx: Any) -> None:
        ctx.messages = manager.preflight(ctx.session_id, ctx.messages, **_counted(ctx))

    return hook


def abefore_model_call(manager: CompactManager) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """`before_model_call` for hosts that await their hooks."""
    check_manager(manager, "abefore_model_call")

    async def hook(ctx: Any) -> None:
        ctx.messages = await manager.apreflight(ctx.session_id, ctx.messages, **_counted(ctx))

    return hook


def _counted(ctx: Any) -> dict[str, Any]:
    return {name: getattr(ctx, name, None) for name in ("tools", "system", "model")}
