"""The plain hook, for any agent loop that passes a context with `session_id` and `messages` before each model call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from compact.integrations.calls import check_manager
from compact.runtime.manager import CompactManager

__all__ = ["abefore_model_call", "before_model_call"]


def before_model_call(manager: CompactManager) -> Callable[[Any], None]:
    """Return a function `hook(ctx)` that replaces `ctx.messages` by what should be sent.

    `ctx.tools` and `ctx.system` are counted if the context has them, and `ctx.model` is the request's model. `ctx.tenant`
    is whose session it is. Without `ctx.session_id`, conversations are told apart by their contents. The hook raises as
    `preflight` does.
    """
    check_manager(manager, "before_model_call")

    def hook(ctx: Any) -> None:
        owner = _for_tenant(manager, ctx)
        name, given = _begin(owner, ctx), ctx.messages
        ctx.messages = owner.preflight(name, given, **_counted(owner, ctx, name))
        owner.resolver.note_sent(name, given, ctx.messages)

    return hook


def abefore_model_call(manager: CompactManager) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """`before_model_call` for hosts that await their hooks."""
    check_manager(manager, "abefore_model_call")

    async def hook(ctx: Any) -> None:
        owner = _for_tenant(manager, ctx)
        name, given = _begin(owner, ctx), ctx.messages
        ctx.messages = await owner.apreflight(name, given, **_counted(owner, ctx, name))
        owner.resolver.note_sent(name, given, ctx.messages)

    return hook


def _for_tenant(manager: CompactManager, ctx: Any) -> CompactManager:
    tenant = getattr(ctx, "tenant", None)
    return manager if tenant is None else manager.for_tenant(tenant)


def _begin(manager: CompactManager, ctx: Any) -> str:
    return manager.tool_results.begin_call(
        ctx.messages, getattr(ctx, "session_id", None), system=getattr(ctx, "system", None)
    )


def _counted(manager: CompactManager, ctx: Any, name: str) -> dict[str, Any]:
    system = getattr(ctx, "system", None)
    if system is not None and (masked := manager.mask(name, system)) is not system:
        ctx.system = masked
    return {name: getattr(ctx, name, None) for name in ("tools", "system", "model")}
