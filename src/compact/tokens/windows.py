"""The context window of a model, and the guard that blocks a window too small to work in. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from compact.errors import ConfigError
from compact.tokens.models import CONFIGURED, ModelTable, match_model, model_table

__all__ = ["DEFAULT_TOKENS", "Window", "WindowVerdict", "check_window", "window_of"]

DEFAULT_TOKENS = 128_000
"""The window assumed for an unknown model."""
EVERY_MODEL = "*"
"""The name in `windows` of every model that has no window of its own there."""

WindowSource: TypeAlias = Literal["configured", "windows", "models", "built-in", "default", "cap", "learned"]

_HARD_FLOOR = 4_000
_WARN_FLOOR = 8_000
_HARD_SHARE = 10
_WARN_SHARE = 5


@dataclass(frozen=True, slots=True)
class Window:
    """A context window in tokens and where the number came from."""

    tokens: int
    source: WindowSource
    known: bool
    """False if the model is unknown and the default is used."""


@dataclass(frozen=True, slots=True)
class WindowVerdict:
    """The guard's verdict on a window. `reason` is a sentence, or empty if there is nothing to report."""

    tokens: int
    warn: bool
    block: bool
    reason: str
    min_tokens: int
    warn_tokens: int


def window_of(
    model: str | None,
    configured: Any = None,
    windows: Mapping[str, Any] | None = None,
    cap: Any = None,
    table: ModelTable | None = None,
) -> Window:
    """Return the window of a model: `configured`, else the user's `windows`, else the model table, else the default.

    `table` replaces the built-in model table. A source whose value is not a positive finite number is skipped. A `cap` below the window wins; a larger one is
    ignored.
    """
    base = _base_window(model or "", configured, windows or {}, table or model_table())
    limit = _positive(cap)
    return Window(limit, "cap", base.known) if limit and limit < base.tokens else base


def _base_window(model: str, configured: Any, windows: Mapping[str, Any], table: ModelTable) -> Window:
    if tokens := _positive(configured):
        return Window(tokens, "configured", known=True)
    usable = [name for name, value in windows.items() if _positive(value)]
    name = model if model in usable else match_model(model, usable)
    if name is None and EVERY_MODEL in usable:
        name = EVERY_MODEL
    if name is not None:
        return Window(_positive(windows[name]), "windows", known=True)
    return _of_table(model, table) if table is not model_table() else _built_in(model)


@lru_cache(maxsize=256)
def _built_in(model: str) -> Window:
    return _of_table(model, model_table())


def _of_table(model: str, table: ModelTable) -> Window:
    found = table.find(model, "window")
    if found is None:
        return Window(DEFAULT_TOKENS, "default", known=False)
    return Window(found.value, "models" if found.source == CONFIGURED else "built-in", known=True)


def check_window(
    context_tokens: Any,
    min_tokens: float | None = None,
    warn_tokens: float | None = None,
    *,
    reference_tokens: Any = None,
    source: str = "",
) -> WindowVerdict:
    """Check whether a window is large enough to work in: `block` below the minimum, `warn` below a comfortable size.

    The minimum is 10% of the window, at least 4000, and never more than the window itself unless that is under 4000.
    The comfortable size is 20%, at least 8000. If a cap made the window smaller, the shares are taken of
    `reference_tokens`, the model's own window. Explicit numbers replace both. A window that is not a positive number
    counts as 0 and is always blocked. `source` tells the reader of the sentence where the number came from.

    Raises:
        ConfigError: `min_tokens` or `warn_tokens` is negative or not a number.
    """
    tokens = _positive(context_tokens)
    reference = _positive(reference_tokens) or tokens
    if min_tokens is None:
        minimum = min(max(_HARD_FLOOR, reference // _HARD_SHARE), max(_HARD_FLOOR, tokens))
    else:
        minimum = _threshold("min_tokens", min_tokens)
    if warn_tokens is None:
        comfortable = max(_WARN_FLOOR, reference // _WARN_SHARE)
    else:
        comfortable = _threshold("warn_tokens", warn_tokens)
    block = tokens == 0 or tokens < minimum
    warn = block or tokens < comfortable
    origin = f" (from {source})" if source else ""
    if tokens == 0:
        given = repr(context_tokens)
        reason = (
            f"The context window must be a positive number of tokens, got {given[:80]}{origin}; the minimum is "
            f"{minimum}. Set max_context_tokens, or add the model to `windows`."
        )
    elif block:
        reason = (
            f"The context window of {tokens} tokens{origin} is too small for a working session: the minimum is "
            f"{minimum}. Use a model with a larger window; if the model allows more, raise max_context_tokens, and on "
            "a local server the server's own context limit too; or lower guard.min_context_tokens."
        )
    elif warn:
        reason = (
            f"The context window of {tokens} tokens{origin} is small: below {comfortable} a session is compacted "
            "often and forgets early."
        )
    else:
        reason = ""
    return WindowVerdict(tokens, warn, block, reason, minimum, comfortable)


def _positive(value: Any) -> int:
    """Return a positive finite number as an int, and 0 for everything else."""
    return max(0, int(value)) if _is_number(value) else 0


def _threshold(name: str, value: Any) -> int:
    if not _is_number(value) or value < 0:
        raise ConfigError(f"{name} must be a number of tokens, 0 or more, got {value!r}", path=name)
    return int(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)
