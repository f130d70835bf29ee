"""The progressive compaction addendum's names: a thin face on `CompactManager` with the preset `progressive`.

    large tool result       over 20,000 tokens           a preview and a path stay            process_tool_result
    reversible stages       from 85% of the window       outputs and written files: pointers  compact_messages
    summary                 from 95% of the window       all but the newest 20% of it         summarize_conversation

`manage_context` does what is due, before each model call. Where the addendum leaves something open, compact's own rules
hold: reaching a threshold is enough, everything that is sent is counted, file names carry a content hash and no time, and
a summary is an assistant's message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from compact import tokens
from compact.archive import keys
from compact.archive.stores.backend import Backend, backend_archive
from compact.config import CompactConfig, share_of
from compact.engine.driver import drive
from compact.engine.effects import Need, Store
from compact.engine.line import Call, Line
from compact.engine.stages.offload import offloaded
from compact.errors import ArchiveError, ConfigError
from compact.events import CallsShrunk, Event, Offload
from compact.messages.dialects import get
from compact.runtime.manager import DEFAULT_SESSION, CompactManager
from compact.runtime.services import Work
from compact.runtime.session_cache import Session
from compact.summaries.agent import agent_summarizer
from compact.tokens import Meter
from compact.tokens.encodings import ENCODINGS
from compact.tokens.models import model_table
from compact.tokens.windows import DEFAULT_TOKENS, window_of

__all__ = ["CompactionResult", "ContextConfig", "ContextManagementMiddleware"]

_RECENT_SHARE = 0.20
_TARGET = 0.5


def _known_limits() -> dict[str, int]:
    names = (
        "claude-sonnet-4-5-20250929",
        "claude-opus-4-5-20251101",
        "gpt-4o",
        "gpt-4-turbo",
        "gemini-1.5-pro",
    )
    return {name: window_of(name).tokens for name in names}


@dataclass
class ContextConfig:
    """When to act."""

    large_result_tokens: int = 20_000
    """A tool result above this goes to a file at once."""
    compaction_threshold: float = 0.85
    """Share of the window from which the reversible stages act."""
    summarization_threshold: float = 0.95
    """Share of the window from which history is summarized."""
    model_context_limits: dict[str, int] = field(default_factory=_known_limits)
    """Windows by model; a model that is missing here is looked up in compact's own table."""
    preview_lines: int = 10
    """Lines of an offloaded result that stay."""
    summarization_model: dict[str, Any] | None = None
    """The model that writes summaries, as {"model": ..., "base_url"?: ...}; None: none, or the agent that is given."""


@dataclass
class CompactionResult:
    """What one operation did. Tokens are those of the messages, or of the one result that was offloaded."""

    original_tokens: int
    compacted_tokens: int
    tokens_saved: int
    strategy_used: str
    """offload, compact, summarize or truncate."""
    files_created: list[str] = field(default_factory=list)


class ContextManagementMiddleware:
    """Keeps the one session of an agent inside its model's window.

    `filesystem_backend` is any object with `write_file(path, content)`: everything that leaves the context is with it
    first. Without one it lies in the configured archive. `tokenizer` counts in the two counting methods and for tool
    results; a whole request is counted as its model counts.

    Raises:
        ConfigError: a setting is wrong, or there is no such tokenizer.
    """

    def __init__(
        self,
        config: ContextConfig | None = None,
        filesystem_backend: Backend | None = None,
        tokenizer: str = "cl100k_base",
    ) -> None:
        self.config = config or ContextConfig()
        self.filesystem = filesystem_backend
        self.history: list[CompactionResult] = []
        self._meter = Meter(_model_counted_by(tokenizer))
        archive = None if filesystem_backend is None else backend_archive(filesystem_backend)
        self._manager = _Manager(_settings(self.config, self._meter.model), archive=archive)
        self._events_seen = len(self._events())

    # --- counting

    def count_tokens(self, text: str) -> int:
        """Tokens of a text."""
        return self._meter.count_text(text)

    def count_message_tokens(self, messages: list[Any]) -> int:
        """Tokens of a request with these messages: everything that is sent, calls and their arguments too."""
        return self._meter.estimate(messages).total

    def get_context_limit(self, model: str) -> int:
        """The model's window in tokens; 128,000 for a model that nobody knows."""
        return window_of(model, windows=self.config.model_context_limits).tokens

    # --- tool results

    def should_offload_result(self, result: str) -> bool:
        """Whether a tool result is too large for the context."""
        return self.count_tokens(result) > self.config.large_result_tokens

    def offload_large_result(self, result: str, tool_name: str, tool_call_id: str) -> tuple[str, str]:
        """Stores a tool result; gives its path, and the preview that stands for it.

        Raises:
            ArchiveError: it could not be stored, and must stay in the context.
        """
        with self._noting(lambda: self.count_tokens(result)):
            return self._manager.offload(result, tool_name, tool_call_id)

    def process_tool_result(self, result: str, tool_name: str, tool_call_id: str) -> str:
        """A tool result as it should go into the context. One that cannot be stored stays as it is."""
        with self._noting(lambda: self.count_tokens(result)):
            shown: str = self._manager.process_tool_result(result, tool_name, tool_call_id)
            return shown

    # --- the session

    def compact_messages(self, messages: list[Any], model: str) -> list[Any]:
        """From 85% of the window: tool outputs and written files become pointers. The same list below that.

        Raises:
            MessageError: an entry is not a message.
        """
        with self._noting(lambda: self._size(messages, model)):
            return self._manager.reversible_stages(messages, model)

    async def summarize_conversation(
        self, messages: list[Any], model: str, summarization_agent: Any = None
    ) -> list[Any]:
        """From 95% of the window: one summary for everything but the newest 20%. The same list below that.

        Raises:
            MessageError: an entry is not a message.
            InsufficientBudget: what must stay is larger than the window.
            ArchiveError: the conversation does not fit, and could not be stored.
        """
        limit = self.get_context_limit(model)
        if self._size(messages, model) < share_of(limit, self.config.summarization_threshold):
            return messages
        with self._noting(lambda: self._size(messages, model)):
            return await self._manager.summary(messages, model, summarization_agent)

    async def manage_context(
        self, messages: list[Any], model: str, summarization_agent: Any = None
    ) -> list[Any]:
        """The messages to send: the same list below 85% of the window, else a shorter one. Raises as the above."""
        with self._noting(lambda: self._size(messages, model)):
            managed: list[Any] = await self._manager.manage_context(messages, model, summarization_agent)
            return managed

    # --- what happened

    def get_compaction_stats(self) -> dict[str, Any]:
        """Tokens saved in all, how many operations, and how much each kind saved."""
        return self._manager.get_compaction_stats()

    def get_system_prompt_segment(self) -> str:
        """Text for the agent's system prompt: what happens to its context, and how to get things back."""
        return self._manager.get_system_prompt_segment()

    def recovery_tools(self) -> dict[str, Any]:
        """read_file, grep, ls and search over what left the context, for an agent whose host has none."""
        return self._manager.recovery_tools(DEFAULT_SESSION)

    def close(self) -> None:
        """Ends what runs in the background."""
        self._manager.close()

    def _size(self, messages: list[Any], model: str) -> int:
        return tokens.estimate(messages, model=model or self._meter.model).total

    @contextmanager
    def _noting(self, size_before: Callable[[], int]) -> Iterator[None]:
        """Adds what the manager did meanwhile to the history."""
        before = self._manager.get_compaction_stats()["by_strategy"]
        yield
        stats = self._manager.get_compaction_stats()["by_strategy"]
        gains = {strategy: saved - before.get(strategy, 0) for strategy, saved in stats.items()}
        if not any(gains.values()):
            return
        files, size = self._new_files(), size_before()
        for strategy, gain in gains.items():
            if gain:
                created = files.get(strategy, self._conversation())
                self.history.append(CompactionResult(size, size - gain, gain, strategy, created))
                size -= gain

    def _new_files(self) -> dict[str, list[str]]:
        """The files that were written since the last time, by strategy."""
        self._manager.flush()
        events = self._events(self._events_seen)
        self._events_seen += len(events)
        found: dict[str, list[str]] = {}
        for event in events:
            if isinstance(event.properties, Offload):
                found.setdefault("offload", []).append(event.properties.file_path)
            elif isinstance(event.properties, CallsShrunk):
                found.setdefault("compact", []).append(event.properties.file_path)
        return found

    def _events(self, start: int = 0) -> list[Event]:
        try:
            return self._manager.archive.events(DEFAULT_SESSION, start)
        except ArchiveError:
            return []  # the history then names no files; that is no reason to stop an agent

    def _conversation(self) -> list[str]:
        """Where the conversation before the newest step lies."""
        outcome = self._manager.last_outcome(DEFAULT_SESSION)
        if outcome is None or outcome.step is None:
            return []
        return [f"/{keys.file_names(outcome.step)['history']}"]


_NO_LIMIT = 10**12


class _Manager(CompactManager):
    """The manager, with the rungs of its ladder callable one by one."""

    def _configured_window(self, model: str | None) -> int | None:
        """Every model that a call names is looked up: the configured one only counts."""
        return None if model else self.config.max_context_tokens

    def offload(self, text: str, tool_name: str, tool_call_id: str) -> tuple[str, str]:
        """The path of a text in the archive, and its pointer; whatever its size."""
        session, meter = self._sessions.get(DEFAULT_SESSION), self._meter(self.config.model)
        paths: list[str] = []

        def serve(need: Need) -> Any:
            answer = self._outside.serve(Work(session), need, meter)
            if isinstance(need, Store):
                paths.append(answer)
            return answer

        pointer = drive(
            offloaded(text, tool_name, tool_call_id, self._desk(session, get("chat"), meter)), serve
        )
        return paths[0], pointer

    def reversible_stages(self, messages: list[Any], model: str) -> list[Any]:
        """A preflight that stops before the summary, however large the rest is."""

        def line(session: Session) -> Line:
            made = self._line(session, model)
            thresholds = replace(made.limits.thresholds, budget=_NO_LIMIT)
            made.limits = replace(
                made.limits, budget=_NO_LIMIT, summarize_above=_NO_LIMIT, thresholds=thresholds
            )
            return made

        reduced: list[Any] = self._run(DEFAULT_SESSION, Call(messages=messages), line=line)
        return reduced

    async def summary(self, messages: list[Any], model: str, agent: Any) -> list[Any]:
        """Everything folded that is older than the recent share."""
        call = Call(messages=messages, manual=True, note="summarize_conversation")
        summarizer = None if agent is None else agent_summarizer(agent)
        folded: list[Any] = await self._arun(DEFAULT_SESSION, call, model, summarizer)
        return folded


def _settings(config: ContextConfig, model: str) -> CompactConfig:
    summarizer = config.summarization_model or {}
    return CompactConfig.preset(
        "progressive",
        model=model,
        max_context_tokens=DEFAULT_TOKENS,  # of a call that names no model
        windows=config.model_context_limits,
        policy={
            "trigger_pct": config.compaction_threshold,
            "summarize_pct": config.summarization_threshold,
            "target_pct": min(_TARGET, config.compaction_threshold),
            "recent_share": _RECENT_SHARE,
            # The share alone says what is recent, and the room above the summary threshold is the buffer.
            "keep_recent_turns": 1,
            "keep_tool_io_pairs": 0,
            "hard_cap_buffer": 0,
        },
        offload={
            "large_result_tokens": config.large_result_tokens,
            "preview_lines": config.preview_lines,
        },
        summary={"model": summarizer.get("model"), "base_url": summarizer.get("base_url")},
        guard={
            "min_context_tokens": 0,
            "warn_context_tokens": 0,
            "min_room_share": 0.0,
        },  # the host chose the limits itself
    )


def _model_counted_by(tokenizer: str) -> str:
    """A model whose own tokenizer it is."""
    for name, profile in model_table().profiles.items():
        if profile.exact and profile.encoding == tokenizer:
            return name
    known = ", ".join(sorted(ENCODINGS))
    raise ConfigError(f"tokenizer must be one of {known}, got {tokenizer!r:.40}", path="tokenizer")
