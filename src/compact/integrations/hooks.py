"""The plain hook, for any agent loop that passes a context with `session_id` and `messages` before each model call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from compact.config import CompactConfig
from compact.integrations.managers import take_manager
from compact.runtime.manager import CompactManager

__all__ = ["abefore_model_call", "before_model_call"]


def before_model_call(
    manager: CompactManager | CompactConfig | None = None,
) -> Callable[[Any], None]:
    """Return a function `hook(ctx)` that replaces `ctx.messages` by what should be sent.

    `ctx.tools` and `ctx.system` are counted if the context has them, and a name in `ctx.model` decides the window. The
    hook raises as `preflight` does.

    Raises:
        ConfigError: `manager` is neither a manager nor a configuration.
    """
    chosen = take_manager(manager, "before_model_call")

    def hook(ctx: Any) -> None:
        ctx.messages = chosen.preflight(ctx.session_id, ctx.messages, **_counted(ctx))

    return hook


def abefore_model_call(
    manager: CompactManager | CompactConfig | None = None,
) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """`before_model_call` for hosts that await their hooks."""
    chosen = take_manager(manager, "abefore_model_call")

    async def hook(ctx: Any) -> None:
        ctx.messages = await chosen.apreflight(ctx.session_id, ctx.messages, **_counted(ctx))

    return hook


def _counted(ctx: Any) -> dict[str, Any]:
    model = getattr(ctx, "model", None)
    return {
        "tools": getattr(ctx, "tools", None),
        "system": getattr(ctx, "system", None),
        "model": model if isinstance(model, str) else None,
    }
