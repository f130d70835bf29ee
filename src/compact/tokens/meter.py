"""The meter: how many tokens a request has, and where they are.

    raw tokens of a message = 1 + for each of its strings (role, content, name, call id, ...) 1 + its tokens

For a plain message that is OpenAI's published 3 + role + content, and 1 more for a name. Raw counts can be added;
`Meter.scale` converts a sum of them to the model's own tokens, rounded up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from sys import getsizeof
from typing import Any

from compact.errors import ConfigError, MessageError
from compact.messages import CallId, Image, Pdf, Sealed, to_json
from compact.messages.dialects import Dialect, detect, get, not_a_list, read_prompt, unreadable
from compact.messages.dialects.wire import BLOB_SHARE, is_plain
from compact.tokens.counter import Counter, HostCounter, counter_for, why_not_fast
from compact.tokens.documents import count_pages
from compact.tokens.images import image_tokens, sealed_tokens
from compact.tokens.memo import ATTACHED, Counted, Known, Memo, Running, add_attached
from compact.tokens.models import Profile, profile_of
from compact.tokens.windows import window_of

MESSAGE_TOKENS = 1
"""Added for each message."""
STRING_TOKENS = 1
"""Added for each string of a message: its separator."""
REPLY_TOKENS = 3
"""Added once per request: the reply is primed with its role."""
TOOL_TOKENS = 10
"""Added for each tool."""
TOOLS_TOKENS = 12
"""Added once per request with tools."""

_ENTRY_BYTES = 200
_SHORT_CHARS = 1_000
_GAUGED_CHARS = 500_000
_OTHER, _SYSTEM, _DEVELOPER = range(3)
_TOOL = "a tool's schema"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The tokens of a request. `total` is exactly the sum of the four shares."""

    total: int
    system: int
    developer: int
    tools_schema: int
    messages: int
    """Everything that is neither system nor developer, including the priming of the reply."""
    usage_pct: float
    """The share of the window that is used, as a fraction such as 0.85."""
    max_tokens: int
    model: str
    attached: int = 0
    """The pictures, documents and other binary parts in the messages."""
    attached_chars: int = 0
    """The most characters that these take on the wire."""


class Meter:
    """Counts tokens for one model. Every string and message is counted once and remembered. Thread-safe.

    `memo_bytes` bounds what is remembered. `fast` chooses the package that counts: None for the fastest installed, True
    for splintr or an error, False for tiktoken. The numbers are the same. `count` is a function of the host that counts
    instead, in the model's own tokens: then no factor is applied. `profile` replaces what the built-in table says.
    """

    def __init__(
        self,
        model: str,
        *,
        memo_bytes: int = 64_000_000,
        fast: bool | None = None,
        count: Callable[[str], int] | None = None,
        profile: Profile | None = None,
    ) -> None:
        if not isinstance(model, str):
            raise ConfigError(f"model must be a name, got {type(model).__name__}", path="model")
        self._profile = profile or profile_of(model)
        self._fast = fast
        self._host = None if count is None else HostCounter(count)
        if count is not None:
            self._profile = replace(self._profile, exact=False, percent=100)
        self._texts: Memo[str, int] = Memo(memo_bytes // 2)
        self._known = Known(memo_bytes // 2)
        self._last_dialect: Dialect | None = None
        self.model = model
        self.encoding = self._profile.encoding
        self.exact = self._profile.exact
        """Whether the encoding is the model's own; otherwise counts are multiplied by `factor` and rounded up."""
        self.factor = self._profile.percent / 100

    @cached_property
    def _counter(self) -> Counter:
        return self._host or counter_for(self.encoding, self._fast)

    def load(self) -> None:
        """Load the tokenizer now instead of at the first count.

        Raises:
            ConfigError: a function of the host counts, and does not count a first text.
        """
        self._counter.count("")

    @property
    def counted_by(self) -> str:
        """What counts: "splintr", "tiktoken", or "host" for a function of the host."""
        return self._counter.name

    @property
    def reason(self) -> str:
        """Why splintr does not count; empty if it does."""
        if self.counted_by == "splintr":
            return ""
        if self._host is not None:
            return "count_tokens counts"
        return "fast=False" if self._fast is False else why_not_fast(self.encoding)

    def scale(self, raw: int) -> int:
        """Convert raw tokens, or a sum of them, to the model's own tokens, rounded up."""
        return -(-raw * self._profile.percent // 100)

    def count_text(self, text: str) -> int:
        """Raw tokens of a text alone, outside of a message."""
        found = self._texts.get(text)
        if found is None:
            counter = self._counter
            if len(text) < _SHORT_CHARS and text.isascii() and counter.unchecked_chars > 0:
                counter.unchecked_chars -= len(text)
                # Nothing that `Counter.count` guards against can occur here, and most new texts are like this.
                found = len(counter.encode(text)) // counter.bytes_per_token
            else:
                found = counter.count(text)
            self._texts.put(text, found, getsizeof(text) + _ENTRY_BYTES)
        return found

    def gauge_text(self, text: str) -> int:
        """`count_text` for a text of up to a million characters. A longer one is judged by its beginning and its end."""
        if len(text) <= 2 * _GAUGED_CHARS:
            return self.count_text(text)
        sample = self.count_text(text[:_GAUGED_CHARS]) + self.count_text(text[-_GAUGED_CHARS:])
        return sample * len(text) // (2 * _GAUGED_CHARS)

    def count_item(self, item: Any, dialect: str | Dialect) -> int:
        """Raw tokens of one message, separators included.

        Raises:
            MessageError: it is not a message of this dialect.
        """
        known = get(dialect) if isinstance(dialect, str) else dialect
        entry = self._known.find(item, known.NAME) or self._count_item(item, known, [item])
        return entry.raw

    def count_tools(self, tools: Any) -> int:
        """Raw tokens of a request's tools: dicts, objects of an SDK or a framework, or the JSON text of them.

        Raises:
            ConfigError: an entry is nothing of that kind, such as a function or a number.
        """
        if not tools:
            return 0
        if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
            tools = [tools]
        return TOOLS_TOKENS + sum(map(self._count_tool, tools))

    def estimate(
        self,
        messages: Iterable[Any],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | Dialect | None = None,
        max_tokens: int | None = None,
        running: Running | None = None,
    ) -> Estimate:
        """Count a request in the model's own tokens, each share rounded up.

        `system` is a system prompt outside the list, as text or blocks. `dialect` is detected if it is not given;
        `max_tokens` defaults to the model's window. A session passes its own `running` counts; other lists share
        what is remembered of lists.

        Raises:
            MessageError: an entry is not a message of the dialect; names its index.
            ConfigError: `max_tokens` is not positive; `tools` or `system` are of the wrong kind.
        """
        limit = window_of(self.model).tokens if max_tokens is None else max_tokens
        if limit <= 0:
            raise ConfigError(
                f"max_tokens must be a positive number of tokens, got {limit}", path="max_tokens"
            )
        items = messages if type(messages) is list else _as_list(messages)
        shares, attached = self._tally(items, get(dialect) if isinstance(dialect, str) else dialect, running)
        if items:
            shares[_OTHER] += REPLY_TOKENS
        if system:
            try:
                known, prompt = read_prompt(system)
                shares[_SYSTEM] += self.count_item(prompt, known)
            except (MessageError, ValueError) as problem:
                raise _not_a_prompt(system) from problem
        other, first, developer = map(self.scale, shares)
        schema = self.scale(self.count_tools(tools)) if tools else 0
        total = first + developer + schema + other
        return Estimate(total, first, developer, schema, other, total / limit, limit, self.model, *attached)

    def _tally(
        self, items: list[Any], dialect: Dialect | None, running: Running | None
    ) -> tuple[list[int], tuple[int, int]]:
        """Raw tokens by share, and what is attached."""
        # Harness artifacts are counted in their own way, so a list that could be anything is never taken for them.
        guess = self._last_dialect
        chosen = dialect or (None if guess is not None and guess.NAME == "harness" else guess)
        if chosen is None:
            return self._tally(items, self._detect(items, items, None), running)
        if running is None:
            prefix = self._known.find_prefix(items, chosen.NAME)
        else:
            prefix = running.find_prefix(self, items, chosen.NAME)
        rest = items[len(prefix.copies) :]
        if dialect is None:
            fresh = [item for item in rest if self._known.find(item, chosen.NAME) is None]
            detected = self._detect(items, fresh, chosen)
            if detected is not chosen:
                return self._tally(items, detected, running)
        shares = list(prefix.shares)
        entries = []
        for item in rest:
            counted = self._known.find(item, chosen.NAME) or self._count_item(item, chosen, items)
            shares[counted.share] += counted.raw
            entries.append(counted)
        attached = prefix.attached
        if any(map(ATTACHED, entries)):
            attached = add_attached(attached, entries)
        if entries and running is not None:
            running.extend_prefix(self, prefix, entries, shares, attached)
        elif entries:
            self._known.extend_prefix(prefix, items, entries, shares, attached)
        return shares, attached

    def _detect(self, items: list[Any], fresh: list[Any], guess: Dialect | None) -> Dialect:
        """Detect the dialect of a list of which only `fresh` is new. The whole list is read only if the dialect may change."""
        telling = [item for item in fresh if not is_plain(item)]
        if guess is not None and (not telling or _could_be(guess, telling)):
            return guess
        self._last_dialect = detect(items)
        return self._last_dialect

    def _count_item(self, item: Any, dialect: Dialect, items: Sequence[Any]) -> Counted:
        if is_plain(item) and dialect.NAME != "harness":  # there a message is its content alone
            role = item["role"]
            raw = (
                MESSAGE_TOKENS + 2 * STRING_TOKENS + self.count_text(role) + self.count_text(item["content"])
            )
            share = _SYSTEM if role == "system" else _DEVELOPER if role == "developer" else _OTHER
            return self._known.remember(item, raw, share, dialect.NAME, is_plain=True)
        try:
            pieces = tuple(dialect.pieces(item))
        except (ValueError, TypeError, AttributeError) as problem:
            index = next(place for place, known in enumerate(items) if known is item)
            raise unreadable(index, dialect, problem, item) from problem
        raw = MESSAGE_TOKENS + STRING_TOKENS * len(pieces) + sum(map(self._count_piece, pieces))
        bulky = [chars for piece in pieces if (chars := _chars_of(piece))]
        attached = (len(bulky), sum(bulky)) if bulky else None
        return self._known.remember(item, raw, _share(item), dialect.NAME, attached=attached)

    def _count_piece(self, piece: Any) -> int:
        if isinstance(piece, str):
            if type(piece) is CallId and self._profile.call is not None:
                return -(-self._profile.call * 100 // self._profile.percent)
            return self.count_text(piece)
        if isinstance(piece, Image):
            own = image_tokens(piece, self._profile.images)
        elif isinstance(piece, Sealed):
            own = sealed_tokens(piece)
        elif isinstance(piece, Pdf):
            own = count_pages(piece) * self._profile.page
        else:
            return self.count_text(to_json(piece))
        # Formulas give the model's own tokens, so `scale` must not add its margin to them.
        return -(-own * 100 // self._profile.percent)

    def _count_tool(self, tool: Any) -> int:
        entry = self._known.find(tool, _TOOL)
        if entry is None:
            if not _may_be_tool(tool):
                raise _not_a_tool(tool)
            dump = getattr(tool, "model_dump", None)
            data = dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else tool
            text = data if isinstance(data, str) else to_json(data)
            entry = self._known.remember(tool, TOOL_TOKENS + self.count_text(text), _OTHER, _TOOL)
        return entry.raw


def estimate(
    messages: Iterable[Any],
    model: str = "gpt-4o",
    tools: Any = None,
    *,
    system: Any = None,
    dialect: str | Dialect | None = None,
    max_tokens: int | None = None,
) -> Estimate:
    """Count a single request (see `Meter.estimate`).

    Raises:
        MessageError: an entry is not a message; names its index.
        ConfigError: `max_tokens` is not positive.
    """
    return shared_meter(model).estimate(
        messages, tools, system=system, dialect=dialect, max_tokens=max_tokens
    )


@lru_cache(maxsize=4)
def shared_meter(model: str) -> Meter:
    """Return the meter that all calls of `estimate_messages` share for a model."""
    return Meter(model, memo_bytes=8_000_000)


def _as_list(messages: Any) -> list[Any]:
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise not_a_list(messages)
    return messages if isinstance(messages, list) else list(messages)


def _may_be_tool(tool: Any) -> bool:
    """Whether a value can describe a tool. Frameworks have objects of their own; text must be JSON."""
    if isinstance(tool, str):
        return tool.lstrip().startswith(("{", "["))
    return not (
        tool is None or isinstance(tool, bytes | int | float | complex | type) or inspect.isroutine(tool)
    )


def _chars_of(piece: Any) -> int:
    """The most characters that a binary piece takes on the wire; 0 for one of text."""
    if isinstance(piece, str):
        return 0
    if isinstance(piece, Image | Pdf):
        return len(piece.source) or 1
    return piece.chars * BLOB_SHARE if isinstance(piece, Sealed) else 0


def _not_a_tool(tool: Any) -> ConfigError:
    if isinstance(tool, type):
        kind = f"the class {tool.__name__}"
    else:
        kind = f"the function {tool.__name__!r}" if inspect.isroutine(tool) else repr(tool)[:60]
    return ConfigError(
        f"tools must be the schemas of tools, as they go into the request; got {kind}",
        hint="Pass the list that the provider gets: [{'type': 'function', 'function': {'name': ...}}], or an SDK's objects",
        path="tools",
    )


def _not_a_prompt(system: Any) -> ConfigError:
    return ConfigError(
        f"system must be the system prompt, as text or a list of blocks, got {type(system).__name__}",
        hint="Pass what the request gets as `system` or `instructions`",
        path="system",
    )


def _could_be(dialect: Dialect, items: list[Any]) -> bool:
    try:
        return detect(items) is dialect
    except MessageError:
        return False  # detecting the whole list raises the error with the right index


def _share(item: Any) -> int:
    if isinstance(item, dict | Mapping):  # dict first: checking for Mapping is ten times slower
        role = item["role"] if "role" in item else item.get("kind")  # a harness artifact has a kind
    else:
        role = getattr(item, "role", None)
    return _SYSTEM if role == "system" else _DEVELOPER if role == "developer" else _OTHER
