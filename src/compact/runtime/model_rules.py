"""What a manager knows of models: how they count, how large their windows are, and the rules that follow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

from compact.config import CompactConfig, share_of
from compact.engine.limits import Rules
from compact.engine.thinking import ThinkingRules
from compact.errors import ConfigError, WindowTooSmall
from compact.events import PolicyInForce, Warned
from compact.runtime.overflow.learning import LearnedWindows
from compact.runtime.session_cache import Session
from compact.summaries import strategies
from compact.summaries.native import Provider
from compact.tokens import Meter
from compact.tokens.models import RequestLimits, is_same_model, model_table
from compact.tokens.prices import Card, built_in
from compact.tokens.windows import Window, check_window, window_of

_LARGER = "Use a model, or a server, with a larger context window"
_ORIGINS = {
    "configured": "max_context_tokens",
    "windows": "windows in the configuration",
    "models": "models in the configuration",
    "built-in": "the built-in table",
    "default": "the default for unknown models",
    "cap": "a cap",
}
_LOWEST_TARGET = 0.9
"""A target lies at least a tenth below the trigger. Otherwise every call would act again."""
_LEAST_LEDGER = 600
"""Tokens. The ledger may take this many, however small its share."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What a call with one model works with."""

    name: str
    version: int
    """The version of the learned windows that the rules are made from."""
    meter: Meter
    window: Window
    rules: Rules
    warnings: tuple[Warned, ...]
    thinking: ThinkingRules
    card: Card | None
    """What its sessions are billed by; None: money decides nothing, or its prices are not known."""
    provider: Provider | None
    """Whose own compaction the model reads."""
    request: RequestLimits
    """What its provider takes in one request."""


class Models:
    """Meters, windows and rules by model. Thread-safe.

    Raises:
        ConfigError: the configuration names a strategy that does not exist.
    """

    def __init__(self, config: CompactConfig, count_tokens: Callable[[str], int] | None = None) -> None:
        self.config = config
        self.table = model_table().with_rows(config.models)
        """What is known about models, with the user's own rows."""
        self._prices = built_in(self.table)
        self._count_tokens = count_tokens
        self._meters: dict[str, Meter] = {}
        self._lock = threading.Lock()
        self.learned = LearnedWindows(
            reserve=config.policy.reserve_output_tokens,
            buffer=config.policy.hard_cap_buffer,
            least=config.guard.min_context_tokens,
        )
        """What providers' errors taught."""
        self.known: dict[str, KnownModel] = {}
        """Models that were looked up. An entry holds until something is learned."""
        strategies.get(config.policy.strategy)

    def apart(self) -> Models:
        """Return the models of another tenant: counted by the same meters, with nothing learned yet."""
        other = copy(self)
        other.learned, other.known = self.learned.anew(), {}
        return other

    def meter(self, model: str | None) -> Meter:
        """The meter of a model; None: of the configured one."""
        name = model or self.config.model
        found = self._meters.get(name)
        if found is None:
            _check_name(name)
            with self._lock:
                made = Meter(
                    name,
                    memo_bytes=self.config.meter.memo_bytes,
                    count=self._count_tokens,
                    profile=self.table.profile(name),
                )
                found = self._meters.setdefault(name, made)
        return found

    def window(self, model: str | None, session_id: str | None = None) -> Window:
        """The window of a model, and never more than its provider said it takes; with a session, than it said there."""
        return self.learned.narrow(model or self.config.model, self.known_window(model), session_id)

    def known_window(self, model: str | None) -> Window:
        """The window of a model as it is configured or known.

        `max_context_tokens` is the window of the configured model, under any of its names. Another model that `windows`
        or the table knows brings its own; one that nobody knows gets `max_context_tokens` too.
        """
        name, config = model or self.config.model, self.config
        found = window_of(name, windows=config.windows, table=self.table)
        if not found.known or is_same_model(name, config.model):
            found = window_of(
                name, configured=config.max_context_tokens, windows=config.windows, table=self.table
            )
        return found

    def look_up(self, model: str | None) -> KnownModel:
        """Make the rules of a model, and remember them.

        Raises:
            WindowTooSmall: its window cannot hold a working session.
        """
        _check_name(model or self.config.model)
        name, version, window = model or self.config.model, self.learned.version, self.window(model)
        warnings = tuple(_check_window(self.config, window, name))
        rules = rules_for(self.config, window.tokens)
        thinking = self.thinking_rules(name)
        card = self._prices.card(name) if self.config.policy.economy == "auto" else None
        found = self.known[name] = KnownModel(
            name,
            version,
            self.meter(name),
            window,
            rules,
            warnings,
            thinking,
            card,
            self.table.native(name),
            self.table.request(name),
        )
        return found

    def thinking_rules(self, model: str) -> ThinkingRules:
        """What becomes of signed thinking in a pass: as it is configured, else as the model wants it."""
        chosen, preserved = self.config.policy.thinking, self.table.thinking(model).preserved
        strip = preserved if chosen is None else chosen == "strip"
        if chosen == "keep":
            return ThinkingRules(model=model)
        reads = partial(self.table.reads, model)
        return ThinkingRules(strip, keep_open_loop=not preserved, model=model, reads=reads)

    def rules_for_session(self, known: KnownModel, session: Session) -> Rules:
        """The rules of a session. They are tighter if one of its requests was refused.

        They are wider if the session is not held to what others were told.
        """
        window = known.window if known.window.source != "learned" else self.known_window(known.name)
        tokens = self.learned.usable(known.name, session.id, window)
        return rules_for(self.config, tokens) if tokens != known.window.tokens else known.rules


def rules_for(config: CompactConfig, window: int) -> Rules:
    """The rules of a call for a model with this window."""
    policy = config.policy
    budget = config.budget(window)
    down_to = min(policy.target_pct / policy.trigger_pct if policy.trigger_pct else 1.0, _LOWEST_TARGET)
    target = round(config.trigger_tokens(window) * down_to)
    trigger = min(share_of(window, policy.trigger_pct), budget)
    return Rules(
        window=window,
        budget=budget,
        trigger=trigger,
        background=_background_start(config, window, trigger, target),
        target=target,
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
        keep_up_to=budget,
        calls_between=policy.calls_between_passes,
        never_prune=frozenset(policy.roles_never_prune),
        layout=policy.layout,
        retention_window=policy.retention_window,
        max_turns=policy.max_turns,
        strategy=policy.strategy,
        summary_tokens=config.summary.max_tokens,
        ledger_tokens=max(_LEAST_LEDGER, round(target * policy.ledger_share)),
        ineffective_passes=config.recovery.ineffective_passes,
        in_force=PolicyInForce(
            trigger_pct=policy.trigger_pct,
            hard_cap_buffer=policy.hard_cap_buffer,
            strategy=policy.strategy,
        ),
    )


def _background_start(config: CompactConfig, window: int, trigger: int, target: int) -> int | None:
    """The size from which passes are made in the background. One that is not larger than its target has nothing to do."""
    share = config.policy.background_pct
    if share is None:
        return None
    start = share_of(window, share)
    return start if target < start < trigger else trigger


def _check_name(model: Any) -> None:
    if not isinstance(model, str):
        raise ConfigError(
            f"model must be a string, got {type(model).__name__}",
            hint="Pass the name that the request has, such as gpt-4o",
            path="model",
        )


def _check_window(config: CompactConfig, window: Window, model: str) -> list[Warned]:
    """Return the warnings about a model's window, before anything is spent on it.

    Raises:
        WindowTooSmall: it cannot hold a working session; says where the number comes from.
    """
    guard = config.guard
    verdict = check_window(window.tokens, guard.min_context_tokens, guard.warn_context_tokens)
    if verdict.block:
        raise WindowTooSmall(
            f"{verdict.reason} (model {model}, window from {_ORIGINS[window.source]})",
            hint=f"{_LARGER}, or correct the number: set max_context_tokens",
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
