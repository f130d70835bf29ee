"""The settings, section by section. Defaults are those of the compaction specification.

Every field has a docstring; the reference in docs/CONFIG.md is made from them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from compact.config.kinds import (
    Address,
    Allowed,
    Amount,
    Count,
    Folder,
    Identifier,
    Integer,
    Names,
    Number,
    Seconds,
    Share,
    Token,
    Words,
)
from compact.config.problems import config_error, field_problems

WRITE_TOOLS = (
    "write_file",
    "edit_file",
    "create_file",
    "write",
    "edit",
    "multi_edit",
    "apply_patch",
    "replace",
    "replace_in_file",
    "write_to_file",
    "insert_edit_into_file",
    "replace_string_in_file",
    "str_replace_editor",
    "str_replace_based_edit_tool",
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
)
"""Tools of common agents whose arguments repeat what they have just written to a file."""


Exporter: TypeAlias = Literal["jsonl", "console", "ariadne", "agents_sdk", "otlp"]
Rules: TypeAlias = Annotated[
    list[str | dict[str, Any]], Allowed("a list of patterns, or of mappings with id and pattern")
]


class Section(BaseModel):
    """What all sections share: frozen, strict about types and names, and a `ConfigError` that names the field."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    NAME: ClassVar[str] = ""
    """The section's name, the first part of its fields' paths."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise config_error(field_problems(type(self), self.NAME, error, values)) from None


class PolicyConfig(Section):
    """When to act, what stays, and how far down to go."""

    NAME: ClassVar[str] = "policy"

    trigger_pct: Share = 0.85
    """Share of the window at which compaction starts; reaching it is enough."""
    hard_cap_buffer: Amount = 1500
    """Tokens kept free for the next user input and tool results."""
    keep_recent_turns: Count = 6
    """Newest turns whose words stay verbatim; the tool traffic in them follows keep_tool_io_pairs."""
    keep_tool_io_pairs: Amount = 4
    """Newest tool calls with their results that stay verbatim; 0: pairs have no claim beside their turn's."""
    roles_never_prune: Names = ["system", "developer"]
    """Roles whose messages always stay."""
    strategy: Identifier = "task_state"
    """What a summary is made of: task_state, brief, decision_log, code_delta, or one that the host registered."""
    layout: Literal["layered", "selective"] = "layered"
    """layered: pinned, summary, recent. selective: user messages stay where they are, runs between them are folded."""
    token_threshold: Count | None = None
    """Also act at this many tokens."""
    message_threshold: Count | None = None
    """Also act at this many messages."""
    turn_threshold: Count | None = None
    """Also act at this many turns."""
    summarize_pct: Share | None = None
    """Share of the window from which history may be summarized; null: as soon as the reversible stages are not enough."""
    target_pct: Share = 0.5
    """How far down a pass goes, as a share of the window, so that it does not act again on the next turn."""
    retention_window: Amount = 6
    """Layout selective: this many newest messages are never touched."""
    recent_share: Share | None = None
    """Share of the window that the recent part may take; null: as many turns and pairs as fit."""
    max_turns: Count | None = None
    """Hygiene keeps at most this many turns; null: no limit."""
    reserve_output_tokens: Amount = 0
    """The request's max output tokens, subtracted from the window everywhere."""
    timeout_s: Seconds = 120
    """Time for one whole pass; past it the caller gets the messages as they were before."""
    rescue_timeout_s: Seconds = 15
    """Time for the stages that need no model, when a pass was out of time and the messages do not fit as they are."""
    sessions_in_memory: Count = 256
    """Sessions that a manager keeps at hand; one beyond it is read from the archive again when it comes back."""


class SummaryConfig(Section):
    """Who writes summaries, and how long they may be."""

    NAME: ClassVar[str] = "summary"

    max_tokens: Count = 2000
    """Upper limit of one summary; its frame alone takes about 48, so that is the least."""
    model: Words | None = None
    """The model that writes summaries; `agent`: the agent's own; null: extractive, without a model."""
    base_url: Address | None = None
    """Address of an OpenAI-compatible endpoint; null: the client's default."""
    prompt: Words | None = None
    """A prompt template of your own; null: the strategy's."""
    summary_tag: Identifier = "summary"
    """The tag around the summary in the model's reply."""
    seed: Integer | None = 42
    """Sent with the request, for repeatable summaries; null: not sent."""
    temperature: Number = 0
    """Sent with the request."""
    timeout_s: Seconds = 60
    """Time for one request."""
    fallback: Literal["extractive", "pruning-only"] = "extractive"
    """What happens when the model fails: a summary without a model, or none at all."""


class OffloadConfig(Section):
    """Large tool results and repeated file contents, which move to the archive and leave a pointer."""

    NAME: ClassVar[str] = "offload"

    large_result_tokens: Count = 20_000
    """A tool result above this moves to the archive as soon as it is seen."""
    preview_lines: Amount = 10
    """Lines of it that stay in the context."""
    preview_tokens: Amount = 400
    """Upper limit of those lines, for results with very long lines."""
    excerpt_share: Share = 0.25
    """How much of an old output may stay beside its pointer: its most telling lines. 0: pointers alone, which is faster."""
    write_tools: Names = list(WRITE_TOOLS)
    """Tools whose arguments only repeat what now lies in a file."""


class ArchiveConfig(Section):
    """Where everything lies that was taken out of a context."""

    NAME: ClassVar[str] = "archive"

    adapter: Literal["fs", "object_store", "s3", "memory"] = "fs"
    """fs: a folder. object_store and s3: a bucket. memory: gone when the process ends, for tests."""
    root: Folder = ".compact/archive"
    """The folder of adapter fs."""
    bucket: Words | None = None
    """The bucket of adapter s3 or object_store."""
    prefix: Words | None = None
    """Keys in the bucket start with it."""
    kms_key_id: Words | None = None
    """The key that the bucket encrypts with; null: the bucket's default."""
    endpoint_url: Address | None = None
    """Address of an S3-compatible server; null: AWS."""
    timeout_s: Seconds = 5
    """The longest an agent waits for the bucket with outputs and events; past it they go to the spool."""
    step_timeout_s: Seconds = 60
    """The longest a step may take to be confirmed by the bucket; past it the pass is given up."""
    retries: Amount = 2
    """How often a request to the bucket is tried again, within those times."""
    spool_root: Folder = ".compact/spool"
    """Where outputs and events wait while the bucket does not answer."""
    spool_retry_s: Seconds = 30
    """How often the spool tries again, and how long an archive that did not answer is left alone by compaction."""
    lock_timeout_s: Seconds = 5
    """The longest a process waits for another that appends to the same event log."""
    attempt_ttl_s: Seconds = 86400
    """After this long, what an abandoned pass left behind is removed."""


class RedactionConfig(Section):
    """What is masked wherever something leaves the process."""

    NAME: ClassVar[str] = "redaction"

    enabled: bool = True
    """Switching it off is reported as a warning of high severity."""
    rules: str | list[str] = "default"
    """A set of rules (default, pii, digits), or a list of sets and names."""
    extra: Rules = []
    """Rules of your own: patterns, or mappings with an id and a pattern."""


class TracingConfig(Section):
    """Where events go, besides the archive."""

    NAME: ClassVar[str] = "tracing"

    exporters: list[Exporter] = ["jsonl"]
    """Who gets the events. jsonl is the archive's own events file."""
    ariadne_url: Address | None = None
    """Address of the Ariadne trace viewer; null: its default on this machine."""
    ariadne_token: Token | None = None
    """Sent to it as a bearer token, as `compact view` with a token asks for; better in the variable. Never shown."""
    otlp_endpoint: Address | None = None
    """Address of an OpenTelemetry collector; null: as OpenTelemetry's own variables say."""
    queue_events: Count = 10_000
    """Events that may wait for one exporter. Ariadne and OTLP read what is beyond it from the log; others drop it."""
    flush_timeout_s: Seconds = 5
    """How long `close` waits for the archive and the exporters, all together."""


class GuardConfig(Section):
    """Windows that are too small to work in."""

    NAME: ClassVar[str] = "guard"

    min_context_tokens: Amount = 4000
    """A smaller window is refused before anything is spent."""
    warn_context_tokens: Amount = 8000
    """A smaller window is reported."""
    min_room_share: Share = 0.02
    """What system, developer, tools and protected messages must leave of the window, as a share of it; 0: nothing."""


class RecoveryConfig(Section):
    """What happens when a provider still says that the request is too long, and when compaction does not help."""

    NAME: ClassVar[str] = "recovery"

    max_compactions: Amount = 3
    """Compactions per model call after an overflow; 0: the overflow is raised."""
    shrink_share: Share = 0.7
    """How large the next request may be after an overflow, as a share of the refused one."""
    breaker_failures: Count = 3
    """Failures in a row after which the summarizer is left alone."""
    breaker_pause_s: Seconds = 60
    """How long it is left alone before it is tried again."""
    ineffective_passes: Count = 2
    """Passes in a row that do not help, after which no other is tried until something changed."""
    regrow_share: Share = 0.1
    """How much a session must have grown, as a share of the window, to count as changed."""


class MeterConfig(Section):
    """Token counting."""

    NAME: ClassVar[str] = "meter"

    memo_bytes: Amount = 64_000_000
    """Memory for remembered counts."""


SECTIONS: dict[str, type[Section]] = {
    section.NAME: section
    for section in (
        PolicyConfig,
        SummaryConfig,
        OffloadConfig,
        ArchiveConfig,
        RedactionConfig,
        TracingConfig,
        GuardConfig,
        RecoveryConfig,
        MeterConfig,
    )
}
"""All sections by name, in the order of the reference."""
