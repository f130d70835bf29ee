"""The progressive compaction addendum's names: a thin layer over `CompactManager` with the preset `progressive`.

    large tool result     over 20,000 tokens        a preview and a path stay            process_tool_result
    reversible stages     from 85% of the window    outputs and written files: pointers  compact_messages
    summary               from 95% of the window    all but the newest 20% of it         summarize_conversation

`manage_context` does whatever is due before a model call. Where the addendum leaves something open, compact's own rules
apply: reaching a threshold is enough, everything that is sent is counted, file names carry a content hash instead of a
time, and a summary is an assistant message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from compact.archive import Backend
from compact.archive.recall import RecallTool
from compact.config import CompactConfig, SummaryConfig, share_of
from compact.errors import ArchiveError, ConfigError
from compact.events import CallsShrunk, Event, Offload
from compact.runtime.manager import CompactManager
from compact.runtime.recalling import follow_running
from compact.runtime.running import is_program
from compact.runtime.services import CompactionStats
from compact.tokens.encodings import ENCODINGS
from compact.tokens.models import model_table
from compact.tokens.windows import DEFAULT_TOKENS, window_of

__all__ = ["CompactionResult", "ContextConfig", "ContextManagementMiddleware"]

_RECENT_SHARE = 0.20
_TARGET = 0.5
_KNOWN_MODELS = (
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-5-20251101",
    "gpt-4o",
    "gpt-4-turbo",
    "gemini-1.5-pro",
)


@dataclass
class ContextConfig:
    """When to act."""

    large_result_tokens: int = 20_000
    """A tool result above this moves to a file at once."""
    compaction_threshold: float = 0.85
    """Share of the window from which the reversible stages act."""
    summarization_threshold: float = 0.95
    """Share of the window from which history is summarized."""
    model_context_limits: dict[str, int] = field(
        default_factory=lambda: {name: window_of(name).tokens for name in _KNOWN_MODELS}
    )
    """Windows by model. A model that is missing here is looked up in compact's own table."""
    preview_lines: int = 10
    """Lines of an offloaded result that stay."""
    summarization_model: dict[str, Any] | None = None
    """The model that writes summaries: `model`, and any other field of the `summary` settings, such as `base_url`, `prompt`
    or `max_tokens`. None: the agent that is given, or none."""


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
    """Keeps the sessions of an agent inside its model's window.

    `filesystem_backend` is any object with `write_file(path, content)`, plain or async. It receives everything before it
    leaves the context. If it has `read_file(path)` too, a new process continues where the last one stopped. Without a
    backend, the configured archive is used. `tokenizer` counts in the two counting methods and for tool results; a whole
    request is counted as its model counts. `session_id` names the conversation, the same in every process, and `tenant`
    says whose it is. Without an id, conversations are told apart by their contents, each under a name that nobody else can
    know; on the same backend, a new process continues one whose list still begins with what compact has left of it.

    Raises:
        ConfigError: a setting is wrong, or the tokenizer is unknown.
    """

    def __init__(
        self,
        config: ContextConfig | None = None,
        filesystem_backend: Backend | None = None,
        tokenizer: str = "cl100k_base",
        *,
        session_id: str | None = None,
        tenant: str | None = None,
    ) -> None:
        given: Any = session_id
        if given is not None and (not isinstance(given, str) or not given):
            raise ConfigError(
                f"session_id must be a text that is not empty, got {session_id!r:.40}", path="session_id"
            )
        self.config = config or ContextConfig()
        self.session_id = session_id
        self.filesystem = filesystem_backend
        self.history: list[CompactionResult] = []
        settings = _settings(self.config, tokenizer)
        if tenant is not None:
            settings = settings.updated(tenant=tenant)
        self.manager = CompactManager(settings, archive=filesystem_backend)
        """The manager that does the work."""
        self._events_seen: dict[str, int] = {}
        if session_id is not None:
            self._events_seen[session_id] = len(self._events(session_id))

    # --- counting

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
        return self.manager.meter().count_text(text)

    def count_message_tokens(self, messages: list[Any]) -> int:
        """Count the tokens of a request with these messages: everything that is sent, including calls and arguments."""
        return self.manager.meter().estimate(messages).total

    def get_context_limit(self, model: str) -> int:
        """Return the model's window in tokens; 128,000 for an unknown model."""
        return window_of(model, windows=self.config.model_context_limits).tokens

    # --- tool results

    def should_offload_result(self, result: str) -> bool:
        """Return whether a tool result is too large for the context."""
        return self.count_tokens(result) > self.config.large_result_tokens

    def offload_large_result(self, result: str, tool_name: str, tool_call_id: str) -> tuple[str, str]:
        """Store a tool result. Return its path and the preview that stands for it.

        Raises:
            ArchiveError: it could not be stored, and must stay in the context.
        """
        name = self._session_of_result(tool_call_id)
        with self._recording(name, lambda: self.count_tokens(result)):
            return self.manager.offload(result, tool_name, tool_call_id, name)

    def process_tool_result(self, result: str, tool_name: str, tool_call_id: str) -> str:
        """Return a tool result as it should go into the context. One that cannot be stored stays unchanged."""
        name = self._session_of_result(tool_call_id)
        with self._recording(name, lambda: self.count_tokens(result)):
            return self.manager.process_tool_result(result, tool_name, tool_call_id, name)

    # --- the session

    def compact_messages(self, messages: list[Any], model: str) -> list[Any]:
        """Replace tool outputs and written files by pointers, from 85% of the window. Below it, return the same list.

        Raises:
            MessageError: an entry is not a message.
        """
        name = self._session_of(messages)
        with self._recording(name, lambda: self._size(messages, model)):
            return self._noted(name, messages, self.manager.reduce(name, messages, model=model or None))

    async def summarize_conversation(
        self, messages: list[Any], model: str, summarization_agent: Any = None
    ) -> list[Any]:
        """Fold everything but the newest 20% into one summary, from 95% of the window. Below it, return the same list.

        Raises:
            MessageError: an entry is not a message.
            InsufficientBudget: what must stay is larger than the window.
            ArchiveError: the conversation does not fit, and could not be stored.
        """
        threshold = share_of(self.get_context_limit(model), self.config.summarization_threshold)
        if self._size(messages, model) < threshold:
            return messages
        name = self._session_of(messages)
        with self._recording(name, lambda: self._size(messages, model)):
            found = await self.manager.amanual_compact(
                name,
                messages,
                note="summarize_conversation",
                model=model or None,
                summarization_agent=summarization_agent,
            )
            return self._noted(name, messages, found)

    async def manage_context(
        self, messages: list[Any], model: str, summarization_agent: Any = None
    ) -> list[Any]:
        """Return the messages to send: the same list below 85% of the window, else a shorter one.

        Raises as `summarize_conversation` does.
        """
        name = self._session_of(messages)
        with self._recording(name, lambda: self._size(messages, model)):
            found = await self.manager.manage_context(
                messages, model or None, summarization_agent, session_id=name
            )
            return self._noted(name, messages, found)

    # --- what happened

    def get_compaction_stats(self) -> CompactionStats:
        """Return the tokens saved in total and by kind, and the number of operations."""
        return self.manager.get_compaction_stats()

    def get_system_prompt_segment(self) -> str:
        """Return text for the agent's system prompt: what happens to its context, and how to read things back."""
        return self.manager.get_system_prompt_segment()

    def recovery_tools(self) -> dict[str, RecallTool]:
        """Return read_file, grep, ls and search over what left the context, for an agent whose host has none.

        Without a `session_id` they read the conversation of the running call, as `CompactManager.recall_tools` does.
        The program's main thread reads the only conversation that there is, too.
        """
        if self.session_id is not None:
            return self.manager.recall_tools(self.session_id)
        tools = self.manager.recall_tools()
        return follow_running(tools, self._session_to_read, self.manager.recall_tools)

    def close(self) -> None:
        """Stop background work."""
        self.manager.close()

    def _size(self, messages: list[Any], model: str) -> int:
        return self.manager.meter(model or None).estimate(messages).total

    # --- whose call it is

    def _session_of(self, messages: list[Any]) -> str:
        return self.manager.tool_results.begin_call(messages, self.session_id)

    def _session_of_result(self, tool_call_id: str) -> str:
        return self.session_id or self.manager.resolver.place_result(tool_call_id)

    def _session_to_read(self) -> str | None:
        certain = self.manager.resolver.certain
        return certain or (self.manager.sessions.sole if is_program() else None)

    def _noted(self, name: str, messages: list[Any], found: list[Any]) -> list[Any]:
        self.manager.resolver.note_sent(name, messages, found)
        return found

    @contextmanager
    def _recording(self, name: str, size_before: Callable[[], int]) -> Iterator[None]:
        """Add what the manager does inside the block to the history."""
        before = self.manager.get_compaction_stats()["by_strategy"]
        yield
        stats = self.manager.get_compaction_stats()["by_strategy"]
        gains = {strategy: saved - before.get(strategy, 0) for strategy, saved in stats.items()}
        if not any(gains.values()):
            return
        files, size = self._new_files(name), size_before()
        for strategy, gain in gains.items():
            if gain:
                created = files.get(strategy, self._archived_conversation(name))
                self.history.append(CompactionResult(size, size - gain, gain, strategy, created))
                size -= gain

    def _new_files(self, name: str) -> dict[str, list[str]]:
        """Return the files written since the last call, by strategy."""
        self.manager.flush()
        seen = self._events_seen.get(name, 0)
        events = self._events(name, seen)
        self._events_seen[name] = seen + len(events)
        found: dict[str, list[str]] = {}
        for properties in (event.properties for event in events):
            if isinstance(properties, Offload | CallsShrunk):
                strategy = "offload" if isinstance(properties, Offload) else "compact"
                found.setdefault(strategy, []).append(properties.file_path)
        return found

    def _events(self, name: str, start: int = 0) -> list[Event]:
        try:
            return self.manager.archive.events(name, start)
        except ArchiveError:
            return []  # the history then names no files, but the agent can go on

    def _archived_conversation(self, name: str) -> list[str]:
        """Return the path of the conversation before the newest step."""
        outcome = self.manager.last_outcome(name)
        if outcome is None or outcome.step is None:
            return []
        return [self.manager.archive.page_path(name, outcome.step)]


def _settings(config: ContextConfig, tokenizer: str) -> CompactConfig:
    return CompactConfig.preset(
        "progressive",
        # The default model counts with `tokenizer` but has its own name, so that only a call which names no model
        # gets the default window.
        model=f"default/{_model_counted_by(tokenizer)}",
        max_context_tokens=DEFAULT_TOKENS,
        windows=config.model_context_limits,
        policy={
            "trigger_pct": config.compaction_threshold,
            "summarize_pct": config.summarization_threshold,
            "target_pct": min(_TARGET, config.compaction_threshold),
            "recent_share": _RECENT_SHARE,
            # Only the share decides what is recent, and the room above the summary threshold is the buffer.
            "keep_recent_turns": 1,
            "keep_tool_io_pairs": 0,
            "hard_cap_buffer": 0,
        },
        offload={
            "large_result_tokens": config.large_result_tokens,
            "preview_lines": config.preview_lines,
        },
        summary=_summary_settings(config.summarization_model),
        # The host chose the limits itself.
        guard={"min_context_tokens": 0, "warn_context_tokens": 0, "min_room_share": 0.0},
    )


def _summary_settings(model: Any) -> dict[str, Any]:
    """Check which settings a host gave for the model that writes summaries.

    Raises:
        ConfigError: a key is unknown, or no model is named.
    """
    path = "summarization_model"
    if model is None:
        return {}
    known = ", ".join(SummaryConfig.model_fields)
    if not isinstance(model, Mapping):
        raise ConfigError(
            f'{path} must be a dict such as {{"model": "gpt-4o-mini"}}, got {model!r:.60}',
            hint=f"Its keys are {known}",
            path=path,
        )
    for key in model:
        if key not in SummaryConfig.model_fields:
            hint = (
                "Set the key in the environment: OPENAI_API_KEY or COMPACT_SUMMARY_API_KEY"
                if str(key).endswith("key")
                else "base_url names an OpenAI-compatible endpoint; anything else is a summarization_agent"
            )
            raise ConfigError(
                f"{path}.{key} is not a setting; known are {known}", hint=hint, path=f"{path}.{key}"
            )
    if not model.get("model"):
        raise ConfigError(
            f"{path}.model must name a model, got {model.get('model')!r:.40}", path=f"{path}.model"
        )
    return dict(model)


def _model_counted_by(tokenizer: str) -> str:
    """Return a model whose own tokenizer it is."""
    for name, profile in model_table().profiles.items():
        if profile.exact and profile.encoding == tokenizer:
            return name
    known = ", ".join(sorted(ENCODINGS))
    raise ConfigError(f"tokenizer must be one of {known}, got {tokenizer!r:.40}", path="tokenizer")
