"""Model -> how its tokens are counted: the encoding, the margin on it, and what its pictures cost.

OpenAI's encodings are public, and their models are counted exactly. The others are counted with cl100k_base times a
margin that rounds up: cl100k_base because of the two public encodings it is the one that spends more on every script
but Latin. docs/TOKENS.md says which margins were measured, on what, and which are conservative guesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from compact.tokens.images import Area, Crops, Flat, ImageFormula, Patches, Tiles
from compact.tokens.windows import match_model


@dataclass(frozen=True, slots=True)
class Profile:
    """How a model's tokens are counted."""

    encoding: str
    percent: int
    """The margin: 135 counts every 100 tokens of the encoding as 135."""
    exact: bool
    """The encoding is the model's own."""
    images: ImageFormula


_NO_FORMULA = Flat(1600)


def _exact(encoding: str, images: ImageFormula = _NO_FORMULA) -> Profile:
    return Profile(encoding, 100, exact=True, images=images)


def _nearest(percent: int, images: ImageFormula = _NO_FORMULA) -> Profile:
    return Profile("cl100k_base", percent, exact=False, images=images)


_TILES_4O = Tiles(85, 170)
_TILES_5 = Tiles(70, 140)
_TILES_O = Tiles(75, 150)
_PATCHES_NEW = Patches(120, budget=10_000, high_budget=2_500)
_CLAUDE = _nearest(135, Area(edge=1568, most=1600))
_CLAUDE_NEW = _nearest(175, Area(edge=2576, most=4784))

UNKNOWN = _nearest(135)
"""A model that no entry names."""

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "gpt-3.5": _exact("cl100k_base"),
        "gpt-35": _exact("cl100k_base"),
        "gpt-4": _exact("cl100k_base", _TILES_4O),
        "gpt-4o": _exact("o200k_base", _TILES_4O),
        "gpt-4o-mini": _exact("o200k_base", Tiles(2833, 5667)),
        "chatgpt-4o": _exact("o200k_base", _TILES_4O),
        "gpt-4.1": _exact("o200k_base", _TILES_4O),
        "gpt-4.1-mini": _exact("o200k_base", Patches(162)),
        "gpt-4.1-nano": _exact("o200k_base", Patches(246)),
        "gpt-4.5": _exact("o200k_base", _TILES_4O),
        "gpt-5": _exact("o200k_base", _TILES_5),
        "gpt-5-mini": _exact("o200k_base", Patches(162)),
        "gpt-5-nano": _exact("o200k_base", Patches(246)),
        "gpt-5.4": _exact("o200k_base", _PATCHES_NEW),
        "gpt-5.4-mini": _exact("o200k_base", Patches(162)),
        "gpt-5.4-nano": _exact("o200k_base", Patches(246)),
        "gpt-5.5": _exact("o200k_base", _PATCHES_NEW),
        "gpt-5.6": _exact("o200k_base", _PATCHES_NEW),
        "gpt-oss": _exact("o200k_base"),
        "gpt-audio": _exact("o200k_base"),
        "gpt-realtime": _exact("o200k_base"),
        "computer-use-preview": _exact("o200k_base", Tiles(65, 129)),
        "codex": _exact("o200k_base", _TILES_5),
        "codex-mini": _exact("o200k_base", Patches(172)),
        "o1": _exact("o200k_base", _TILES_O),
        "o3": _exact("o200k_base", _TILES_O),
        "o4": _exact("o200k_base", _TILES_O),
        "o4-mini": _exact("o200k_base", Patches(172)),
        # A later OpenAI model: its encoding is not published yet.
        "gpt": Profile("o200k_base", 110, exact=False, images=Patches(120, budget=30_000, high_budget=2_500)),
        # Before Opus 4.7 Claude had one tokenizer; the newer one gives about 30% more tokens.
        "claude": _CLAUDE_NEW,
        "claude-instant": _CLAUDE,
        "claude-2": _CLAUDE,
        "claude-3": _CLAUDE,
        "claude-sonnet-4": _CLAUDE,
        "claude-haiku-4": _CLAUDE,
        "claude-opus-4": _CLAUDE,
        "claude-opus-4-7": _CLAUDE_NEW,
        "claude-opus-4-8": _CLAUDE_NEW,
        "gemini": _nearest(130, Flat(1120)),
        "gemini-1": _nearest(130, Crops()),
        "gemini-2": _nearest(130, Crops()),
        "gemma": _nearest(130),
        "llama": _nearest(110),
        "llama-2": _nearest(145),
        "codellama": _nearest(145),
        "mistral": _nearest(130),
        "mistral-7b": _nearest(145),
        "mixtral": _nearest(145),
        "ministral": _nearest(130),
        "codestral": _nearest(145),
        "devstral": _nearest(130),
        "magistral": _nearest(130),
        "pixtral": _nearest(130, Flat(4096)),
        "qwen": _nearest(125),
        "qwq": _nearest(125),
        "deepseek": _nearest(115),
        "kimi": _nearest(105),
        "moonshot": _nearest(105),
        "glm": _nearest(110),
        "phi": _nearest(105),
        "grok": _nearest(130),
        "command": _nearest(130),
        "nova": _nearest(130),
        "minimax": _nearest(130),
    }
)


@lru_cache(maxsize=256)
def profile_of(model: str) -> Profile:
    """How a model's tokens are counted; an unknown name gets `UNKNOWN`."""
    name = match_model(model, PROFILES)
    return UNKNOWN if name is None else PROFILES[name]
