"""Turn the configuration into what the engine works with."""

from __future__ import annotations

from compact.config import CompactConfig, share_of
from compact.engine.limits import Rules
from compact.errors import WindowTooSmall
from compact.events import PolicyInForce, Warned
from compact.summaries import strategies
from compact.tokens.windows import Window, check_window

_LARGER = "Use a model, or a server, with a larger context window"
_ORIGINS = {
    "configured": "max_context_tokens",
    "windows": "windows in the configuration",
    "built-in": "the built-in table",
    "default": "the default for unknown models",
    "cap": "a cap",
    "learned": "the provider's own error",
}


_LOWEST_TARGET = 0.9
"""A target lies at least a tenth below the trigger. Otherwise every call would act again."""


def rules_for(config: CompactConfig, window: int) -> Rules:
    """The rules of a call for a model with this window.

    Raises:
        ConfigError: there is no strategy of that name.
    """
    policy = config.policy
    strategies.get(policy.strategy)
    budget = config.budget(window)
    down_to = min(policy.target_pct / policy.trigger_pct if policy.trigger_pct else 1.0, _LOWEST_TARGET)
    return Rules(
        window=window,
        budget=budget,
        trigger=min(share_of(window, policy.trigger_pct), budget),
        target=round(config.trigger_tokens(window) * down_to),
        summarize_above=config.summarize_tokens(window),
        recent_tokens=None if policy.recent_share is None else share_of(window, policy.recent_share),
        has_thresholds=any((policy.token_threshold, policy.message_threshold, policy.turn_threshold)),
        token_threshold=policy.token_threshold,
        message_threshold=policy.message_threshold,
        turn_threshold=policy.turn_threshold,
        regrow=share_of(window, config.recovery.regrow_share),
        least_room=share_of(window, config.guard.min_room_share),
        keep_turns=policy.keep_recent_turns,
        keep_pairs=policy.keep_tool_io_pairs,
        never_prune=frozenset(policy.roles_never_prune),
        layout=policy.layout,
        retention_window=policy.retention_window,
        max_turns=policy.max_turns,
        strategy=policy.strategy,
        summary_tokens=config.summary.max_tokens,
        ineffective_passes=config.recovery.ineffective_passes,
        in_force=PolicyInForce(
            trigger_pct=policy.trigger_pct,
            hard_cap_buffer=policy.hard_cap_buffer,
            strategy=policy.strategy,
        ),
    )


def check_model_window(config: CompactConfig, window: Window, model: str) -> list[Warned]:
    """Return the warnings about a model's window, before anything is spent on it.

    Raises:
        WindowTooSmall: it cannot hold a working session; says where the number comes from.
    """
    guard = config.guard
    verdict = check_window(window.tokens, guard.min_context_tokens, guard.warn_context_tokens)
    if verdict.block:
        raise WindowTooSmall(
            f"{verdict.reason} (model {model}, window from {_ORIGINS[window.source]})",
            hint=_LARGER
            if window.source == "learned"
            else f"{_LARGER}, or correct the number: set max_context_tokens",
            tokens=verdict.tokens,
            minimum=verdict.min_tokens,
            source=window.source,
        )
    found = []
    if not window.known:
        text = f"no context window is known for {model}: {window.tokens:,} tokens are assumed; set max_context_tokens"
        found.append(Warned(code="unknown_model", severity="medium", message=text))
    if verdict.warn:
        found.append(Warned(code="small_window", severity="medium", message=verdict.reason))
    return found
