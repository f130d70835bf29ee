"""Model -> context window, and the guard that blocks a window too small to work in.

Everything here is pure. Names are matched as people write them: dated, prefixed by a provider or a region, fine-tuned,
with dots or dashes (`match_model`); of several names that fit, the longest wins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from compact.errors import ConfigError

__all__ = [
    "BUILT_IN",
    "DEFAULT_TOKENS",
    "Window",
    "WindowVerdict",
    "check_window",
    "match_model",
    "window_of",
]

DEFAULT_TOKENS = 128_000
"""The window of a model that nobody knows."""

BUILT_IN: Mapping[str, int] = MappingProxyType(
    {
        # OpenAI. Where the provider caps the input below the window, it is the cap: more would be refused.
        "gpt-3.5-turbo": 16_385,
        "gpt-35-turbo": 16_385,
        "gpt-4": 8_192,
        "gpt-4-32k": 32_768,
        "gpt-4-turbo": 128_000,
        "gpt-4-0125-preview": 128_000,
        "gpt-4-1106": 128_000,
        "gpt-4-vision": 128_000,
        "gpt-4o": 128_000,
        "chatgpt-4o": 128_000,
        "gpt-4.1": 1_047_576,
        "gpt-4.5": 128_000,
        "gpt-5": 272_000,
        "gpt-5-chat": 128_000,
        "gpt-5.1-chat": 128_000,
        "gpt-5.2-chat": 128_000,
        "gpt-5.3-chat": 128_000,
        "gpt-5.4": 922_000,
        "gpt-5.4-mini": 272_000,
        "gpt-5.4-nano": 272_000,
        "gpt-5.5": 922_000,
        "gpt-5.6": 922_000,
        "gpt-6": 922_000,
        "gpt-oss": 131_072,
        "gpt-audio": 128_000,
        "o1": 200_000,
        "o1-mini": 128_000,
        "o1-preview": 128_000,
        "o3": 200_000,
        "o4-mini": 200_000,
        "codex-mini": 200_000,
        # Anthropic
        "claude": 200_000,
        "claude-2": 100_000,
        "claude-2.1": 200_000,
        "claude-instant": 100_000,
        "claude-3": 200_000,
        "claude-sonnet-4": 200_000,
        "claude-sonnet-4-5-20250929": 200_000,
        "claude-opus-4": 200_000,
        "claude-opus-4-5-20251101": 200_000,
        "claude-haiku-4": 200_000,
        "claude-sonnet-4-6": 1_000_000,
        "claude-opus-4-6": 1_000_000,
        "claude-opus-4-7": 1_000_000,
        "claude-opus-4-8": 1_000_000,
        "claude-mythos": 1_000_000,
        "claude-fable": 1_000_000,
        "claude-opus-5": 1_000_000,
        "claude-sonnet-5": 1_000_000,
        "claude-haiku-5": 1_000_000,
        # Google
        "gemini": 1_000_000,
        "gemini-1.0": 32_760,
        "gemini-1.5-pro": 1_000_000,
        "gemini-1.5-flash": 1_000_000,
        "gemini-2.5-computer-use": 128_000,
        "gemma-2": 8_192,
        "gemma-3": 131_072,
        # Meta
        "llama-2": 4_096,
        "llama-3": 8_192,
        "llama-3.1": 128_000,
        "llama-3.2": 128_000,
        "llama-3.3": 128_000,
        "llama-4": 128_000,
        # Mistral
        "mistral-7b": 32_000,
        "mistral-nemo": 128_000,
        "mistral-small": 128_000,
        "mistral-medium": 128_000,
        "mistral-large": 128_000,
        "mixtral-8x7b": 32_000,
        "mixtral-8x22b": 64_000,
        "ministral": 128_000,
        "codestral": 32_000,
        "codestral-2508": 256_000,
        "devstral": 128_000,
        "magistral": 40_000,
        "pixtral": 128_000,
        # Others
        "command-r": 128_000,
        "command-a": 256_000,
        "deepseek": 64_000,
        "deepseek-chat": 128_000,
        "deepseek-reasoner": 128_000,
        "deepseek-v3.1": 128_000,
        "deepseek-v3.2": 128_000,
        "deepseek-v4": 1_000_000,
        "glm-4": 128_000,
        "glm-4.6": 200_000,
        "glm-4.7": 200_000,
        "glm-5": 200_000,
        "grok": 131_072,
        "grok-4": 256_000,
        "grok-4-fast": 2_000_000,
        "grok-4.1-fast": 2_000_000,
        "grok-4.3": 1_000_000,
        "grok-4.5": 500_000,
        "grok-code-fast": 256_000,
        "kimi-k2": 131_072,
        "kimi-k2-0905": 262_144,
        "kimi-k2-thinking": 262_144,
        "kimi-k2.5": 262_144,
        "kimi-k2.6": 262_144,
        "minimax-m2": 196_000,
        "nova-micro": 128_000,
        "nova-lite": 300_000,
        "nova-pro": 300_000,
        "nova-premier": 1_000_000,
        "nova-2": 1_000_000,
        "phi-4": 16_384,
        "qwen2.5": 32_768,
        "qwen3": 131_072,
        "qwen3-coder": 262_144,
        "qwen3-max": 258_048,
        "qwen3-next": 262_144,
        "qwen3.5": 262_144,
        "qwen3.5-plus": 991_808,
        "qwen-max": 30_720,
        "qwen-plus": 129_024,
        "qwen-turbo": 129_024,
    }
)

WindowSource: TypeAlias = Literal["configured", "windows", "built-in", "default", "cap", "learned"]

_HARD_FLOOR = 4_000
_WARN_FLOOR = 8_000
_HARD_SHARE = 10
_WARN_SHARE = 5
_SHORT_NAME = 4


@dataclass(frozen=True, slots=True)
class Window:
    """A context window in tokens and where the number came from."""

    tokens: int
    source: WindowSource
    known: bool
    """False: nobody told, and the default stands in."""


@dataclass(frozen=True, slots=True)
class WindowVerdict:
    """What the guard says about a window. `reason` is a sentence, empty when there is nothing to say."""

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
) -> Window:
    """The window of a model: `configured`, else the user's `windows`, else the built-in table, else the default.

    A value that is no positive finite number is passed over in favour of the next source. A `cap` below the window
    wins; a larger one is ignored.
    """
    base = _base_window(model or "", configured, windows or {})
    limit = _positive(cap)
    return Window(limit, "cap", base.known) if limit and limit < base.tokens else base


def _base_window(model: str, configured: Any, windows: Mapping[str, Any]) -> Window:
    if tokens := _positive(configured):
        return Window(tokens, "configured", known=True)
    usable = [name for name, value in windows.items() if _positive(value)]
    name = model if model in usable else match_model(model, usable)
    if name is not None:
        return Window(_positive(windows[name]), "windows", known=True)
    name = _built_in_name(model)
    if name is not None:
        return Window(BUILT_IN[name], "built-in", known=True)
    return Window(DEFAULT_TOKENS, "default", known=False)


@lru_cache(maxsize=256)
def _built_in_name(model: str) -> str | None:
    return match_model(model, BUILT_IN)


def check_window(
    context_tokens: Any,
    min_tokens: float | None = None,
    warn_tokens: float | None = None,
    *,
    reference_tokens: Any = None,
    source: str = "",
) -> WindowVerdict:
    """Whether a window is large enough to work in: `block` below the minimum, `warn` below a comfortable size.

    The minimum is 10% of the window (of `reference_tokens`, the model's own window, where a cap made it smaller), at
    least 4000, and never more than the window itself unless that is under 4000; the comfortable size is 20%, at least
    8000. Explicit numbers replace them. A window that is no positive number counts as 0 and is always blocked.
    `source` says in the sentence where the number came from.

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


def match_model(model: str, names: Iterable[str]) -> str | None:
    """The longest of `names` that stands in a model's name as a part of its own; None if there is none.

    `openrouter/openai/gpt-4.1-mini`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0` and `ft:gpt-4o:org::id` are found
    by `gpt-4.1`, `claude-sonnet-4-5` and `gpt-4o`; `gpt-4` does not stand in `gpt-4o`.
    """
    wanted = _canonical(model)
    found: str | None = None
    length = 0
    for name in names:
        key = _canonical(name)
        if len(key) > length and _stands_in(wanted, key):
            found, length = name, len(key)
    return found


@lru_cache(maxsize=2048)
def _canonical(name: str) -> str:
    """One spelling for the many: `Llama-v3p1`, `llama-3.1` and `llama3.1` are the same model."""
    text = name.strip().lower().replace("_", "-")
    if text.startswith("ft:"):  # what follows the base model is the customer's own wording
        text = text.split(":")[1]
    text = re.sub(r"(?<=\d)[.p](?=\d)", "-", text)
    return re.sub(r"(?<=[a-z])-v?(?=\d)", "", text)


def _stands_in(wanted: str, key: str) -> bool:
    start = wanted.find(key)
    while start >= 0:
        if _starts_part(wanted, start, len(key)) and _ends_part(wanted, start + len(key)):
            return True
        start = wanted.find(key, start + 1)
    return False


def _starts_part(wanted: str, start: int, length: int) -> bool:
    if start == 0:
        return True
    # "o1" after a dash is another maker's word ("marco-o1"); after a slash it is a model.
    return wanted[start - 1] in ("/:.@" if length < _SHORT_NAME else "/:.@-")


def _ends_part(wanted: str, end: int) -> bool:
    following = wanted[end : end + 1]
    if following.isdigit():
        return not wanted[end - 1].isdigit()
    return not following.isalpha()


def _positive(value: Any) -> int:
    """A positive finite number as an int; 0 for everything else."""
    return max(0, int(value)) if _is_number(value) else 0


def _threshold(name: str, value: Any) -> int:
    if not _is_number(value) or value < 0:
        raise ConfigError(f"{name} must be a number of tokens, 0 or more, got {value!r}", path=name)
    return int(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)
