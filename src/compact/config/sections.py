"""All settings, section by section. The defaults are those of the compaction specification.

Every field has a docstring. The reference in docs/CONFIG.md is generated from them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    ValidationError,
)

from compact.config.problems import WrongPart, config_error, field_problems
from compact.errors import RedactionError
from compact.redaction import rules_from_config
from compact.tokens.models import check_rows
from compact.tracing.exporters import ExporterName

MOST = 10**12
"""The largest number of anything: more than any machine counts, and small enough for every calculation."""
MOST_SECONDS = 10**9
"""Thirty years. What waits longer overflows the clocks of operating systems."""
CHOICE: dict[str, JsonValue] = {"choice": True}
"""Marks a text that is one of a closed set of names. A file that was only found may set it (`compact.config.rights`)."""
GROWS: dict[str, JsonValue] = {"grows": True}
"""Marks a list that such a file may extend."""

# The types of settings. A description completes the sentence "x must be ..." in errors and in the reference.


def _to_text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _require_visible(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text or not all("!" <= character <= "~" for character in text):
        raise ValueError("not a token")  # an HTTP client would reject the header, and show it in its error
    return value


def _require_rules(given: Any) -> Any:
    for place, entry in enumerate([given] if isinstance(given, str) else given):
        try:
            rules_from_config(entry)
        except RedactionError as problem:
            raise WrongPart("" if isinstance(given, str) else f"[{place}]", str(problem)) from problem
    return given


def _require_models(given: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    problem = check_rows(given)
    if problem is not None:
        raise WrongPart(f".{problem[0]}", problem[1])
    return given


def _require_key_place(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"(?:env|file):.+", value):
        raise ValueError("not the place of a key")
    return value


def _off_if_false(value: Any) -> Any:
    return "off" if value is False else value  # YAML reads a bare `off` as false


Share: TypeAlias = Annotated[float, Field(ge=0, le=1, description="0.0-1.0")]
Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST, description="a whole number >= 1")]
Amount: TypeAlias = Annotated[int, Field(ge=0, le=MOST, description="a whole number >= 0")]
Integer: TypeAlias = Annotated[int, Field(ge=-(2**63), le=2**63 - 1, description="a whole number")]
Number: TypeAlias = Annotated[float, Field(ge=0, le=MOST, description="a number >= 0")]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=MOST_SECONDS, description="a number of seconds > 0")]
ReplyBytes: TypeAlias = Annotated[
    int, Field(ge=1_000, le=64_000_000, description="a whole number of bytes, 1,000-64,000,000")
]
ModelName: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=200, description="a text that is not empty", json_schema_extra={**CHOICE}),
]
"""The name of a model. It chooses a tokenizer and a window, and is no address."""
Words: TypeAlias = Annotated[str, Field(min_length=1, description="a text that is not empty")]
Name: TypeAlias = Annotated[str, Field(pattern=r"\S", description="a text with more than blanks")]
Identifier: TypeAlias = Annotated[
    str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", description="a name of letters, digits, _ and -")
]
Strategy: TypeAlias = Annotated[Identifier, Field(json_schema_extra={**CHOICE})]
"""The name of a summary strategy that the program itself has registered."""
Layout: TypeAlias = Annotated[Literal["layered", "selective"], Field(json_schema_extra={**CHOICE})]
Folder: TypeAlias = Annotated[str, BeforeValidator(_to_text), Field(min_length=1, description="a path")]
Address: TypeAlias = Annotated[
    str,
    # Write-only, so that errors do not repeat it: an address may carry a password.
    Field(
        pattern=r"^https?://\S+$",
        description="an http:// or https:// address",
        json_schema_extra={"writeOnly": True},
    ),
]
Token: TypeAlias = Annotated[
    SecretStr,
    AfterValidator(_require_visible),
    Field(description="a text of visible ASCII without spaces"),
]
Names: TypeAlias = Annotated[list[str], Field(description="a list of names")]
MoreNames: TypeAlias = Annotated[list[str], Field(description="a list of names", json_schema_extra={**GROWS})]
Windows: TypeAlias = Annotated[
    dict[str, Count], Field(description="a mapping of model names to tokens, each a whole number >= 1")
]
Models: TypeAlias = Annotated[
    dict[str, dict[str, Any]],
    AfterValidator(_require_models),
    Field(description="a mapping of model names to fields of the model table"),
]
RuleNames: TypeAlias = Annotated[
    str | list[str], AfterValidator(_require_rules), Field(description="a name or a list of names")
]
Rules: TypeAlias = Annotated[
    list[str | dict[str, Any]],
    AfterValidator(_require_rules),
    Field(description="a list of names, patterns (RE2), and mappings with name and pattern"),
]
KeyPlace: TypeAlias = Annotated[
    str | Callable[[], Any],
    AfterValidator(_require_key_place),
    # Write-only, so that an error does not repeat a key that was written here by mistake.
    Field(
        description="env:NAME, file:PATH, or a function that returns the key",
        json_schema_extra={"writeOnly": True},
    ),
]
ThinkingBlocks: TypeAlias = Annotated[Literal["strip", "keep"], Field(json_schema_extra={**CHOICE})]
EconomyChoice: TypeAlias = Annotated[
    Literal["auto", "off"], BeforeValidator(_off_if_false), Field(json_schema_extra={**CHOICE})
]
LiveMasking: TypeAlias = Annotated[Literal["off", "secrets", "pii"], BeforeValidator(_off_if_false)]

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


class ConfigSection(BaseModel):
    """Base of all sections: frozen, strict about types and names.

    Raises:
        ConfigError: a name is not a setting, or a value is not allowed. Lists all problems of the section.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise config_error(field_problems(type(self), self.section_name(), error, values)) from None

    @classmethod
    def section_name(cls) -> str:
        """Return the first part of the fields' paths: `policy` for `PolicyConfig`."""
        return cls.__name__.removesuffix("Config").lower()


class PolicyConfig(ConfigSection):
    """When compaction starts, what it keeps, and how far down it goes."""

    trigger_pct: Share = 0.85
    """Share of the window at which compaction starts. Reaching it is enough."""
    hard_cap_buffer: Amount = 1500
    """Tokens kept free for the next user input and tool results."""
    keep_recent_turns: Count = 6
    """Newest turns whose words stay verbatim. Their tool traffic follows keep_tool_io_pairs."""
    keep_tool_io_pairs: Amount = 4
    """Newest tool calls that stay verbatim with their results. 0: pairs are not kept for their own sake."""
    roles_never_prune: MoreNames = ["system", "developer"]
    """Roles whose messages always stay."""
    strategy: Strategy = "task_state"
    """What a summary contains: task_state, brief, decision_log, code_delta, or a strategy that the host registered."""
    layout: Layout = "layered"
    """layered: pinned, summary, recent. selective: user messages stay in place, and the runs between them are folded."""
    token_threshold: Count | None = None
    """Also start at this many tokens."""
    message_threshold: Count | None = None
    """Also start at this many messages."""
    turn_threshold: Count | None = None
    """Also start at this many turns."""
    summarize_pct: Share | None = None
    """Share of the window from which history may be summarized. null: as soon as the reversible stages are not enough."""
    target_pct: Share = 0.5
    """How far down a pass goes, as a share of the window. A low target keeps the next turns from compacting again."""
    background_pct: Share | None = 0.75
    """Share of the window from which a pass that asks a model is made in the background, so that no call below the budget
    waits for it. Above trigger_pct it counts as trigger_pct. null: never."""
    ledger_share: Share = 0.1
    """Share of the target that the ledger of the user's words may take beside a summary; at least 600 tokens."""
    calls_between_passes: Amount = 6
    """A pass that the budget forces after fewer replies than this may fold more: below summarize_pct, and user messages."""
    retention_window: Amount = 6
    """Layout selective: the newest messages that are never touched."""
    recent_share: Share | None = None
    """Share of the window that the recent part may take. null: as many turns and pairs as fit."""
    max_turns: Count | None = None
    """Turns that hygiene keeps at most. null: no limit."""
    reserve_output_tokens: Amount = 0
    """The request's max output tokens. They are subtracted from the window everywhere."""
    thinking: ThinkingBlocks | None = None
    """Signed thinking blocks behind the first message that a pass changes. strip: they are taken out. keep: they stay, for
    hosts that send drop_block. null: strip for models that check what stands before a block, keep for others."""
    economy: EconomyChoice = "auto"
    """auto: a pass is also made below the trigger, on a provider's cache that is cold anyway, if that saves money at the
    model's prices. off: money decides nothing. See docs/ECONOMY.md."""
    timeout_s: Seconds = 120
    """Time limit of one pass. After it, the caller gets the messages unchanged."""
    rescue_timeout_s: Seconds = 15
    """Time limit of the stages without a model, used when a pass timed out and its messages do not fit unchanged."""
    sessions_in_memory: Count = 256
    """Sessions that a manager keeps in memory. Others are read from the archive when they are used again."""


class SummaryConfig(ConfigSection):
    """Who writes summaries, and how long they may be."""

    max_tokens: Count = 2000
    """Upper limit of one summary. At least 48, because the frame around a summary takes that many. A model is asked only if
    64 tokens are left for its text, beside the frame and the user's instructions."""
    model: Words | None = None
    """The model that writes summaries. `agent`: the agent's own. `native`: the agent's provider compacts by itself, where it can.
    null: extractive, without a model."""
    base_url: Address | None = None
    """Address of an OpenAI-compatible endpoint; with `native`, of the provider's API. null: the client's default."""
    prompt: Words | None = None
    """A custom prompt template. null: the strategy's."""
    summary_tag: Identifier = "summary"
    """The tag around the summary in the model's reply."""
    seed: Integer | None = 42
    """Sent with the request, for repeatable summaries. null: not sent."""
    temperature: Number = 0
    """Sent with the request."""
    timeout_s: Seconds = 60
    """Time limit of one request."""
    max_reply_bytes: ReplyBytes = 2_000_000
    """Largest reply that is read from the endpoint, after decompression. A larger one counts as a failure."""
    fallback: Literal["extractive", "pruning-only"] = "extractive"
    """What happens when the model fails: a summary without a model, or no summary."""


class OffloadConfig(ConfigSection):
    """Large tool results and repeated file contents, which move to the archive and leave a pointer."""

    large_result_tokens: Count = 20_000
    """A tool result above this moves to the archive as soon as it is seen."""
    preview_lines: Amount = 10
    """Lines of it that stay in the context."""
    preview_tokens: Amount = 400
    """Upper limit of the preview, for results with very long lines."""
    excerpt_share: Share = 0.25
    """Share of an old output that may stay beside its pointer, as its most telling lines. 0: pointers only, which is faster."""
    write_tools: Names = list(WRITE_TOOLS)
    """Tools whose arguments only repeat the contents of a file."""


class ArchiveConfig(ConfigSection):
    """Where everything that leaves a context is stored."""

    adapter: Literal["fs", "object_store", "s3", "memory"] = "fs"
    """fs: a folder. object_store and s3: a bucket. memory: lost when the process ends, for tests."""
    root: Folder = ".compact/archive"
    """The folder of adapter fs."""
    bucket: Words | None = None
    """The bucket of adapter s3 or object_store."""
    prefix: Words | None = None
    """Prefix of all keys in the bucket."""
    kms_key_id: Words | None = None
    """The key that the bucket encrypts with. null: the bucket's default."""
    endpoint_url: Address | None = None
    """Address of an S3-compatible server. null: AWS."""
    timeout_s: Seconds = 5
    """Longest time an agent waits for the bucket to take outputs and events. After it, they go to the spool."""
    step_timeout_s: Seconds = 60
    """Longest time the bucket may take to confirm a step. After it, the pass is abandoned."""
    retries: Amount = 2
    """How often a request to the bucket is retried within these times."""
    spool_root: Folder = ".compact/spool"
    """Where outputs and events wait while the bucket does not answer."""
    spool_retry_s: Seconds = 30
    """Seconds between attempts to empty the spool. Compaction leaves an archive alone for as long after a failure."""
    lock_timeout_s: Seconds = 5
    """Longest time a process waits for another one that appends to the same event log."""
    attempt_ttl_s: Seconds = 86400
    """Age at which the remains of an abandoned pass are removed."""
    mac_key: KeyPlace | None = None
    """Where the key lies with which states, lists and event logs are sealed (HMAC-SHA256), for a store that others can write
    to: `env:NAME`, `file:PATH`, or in Python a function. A state with a wrong MAC counts as damaged. null: hashes, no key."""


class RedactionConfig(ConfigSection):
    """What is masked wherever data leaves the process."""

    enabled: bool = True
    """Turning it off is reported as a warning of high severity."""
    rules: RuleNames = "default"
    """A set of rules (default, pii, digits; vendors and common are the parts of default), or a list of sets and rule names."""
    extra: Rules = []
    """More rules: names of built-in rules and sets, patterns in RE2 syntax, mappings with a name and a pattern, or {file: PATH}."""
    live: LiveMasking = "off"
    """What is masked in the messages that go to the model. secrets: what `rules` and `extra` find; pii: personal data too."""


class TracingConfig(ConfigSection):
    """Where events go, besides the archive."""

    exporters: list[ExporterName] = ["jsonl"]
    """Exporters that receive the events. jsonl is the archive's own events file."""
    ariadne_url: Address | None = None
    """Address of the Ariadne trace viewer. null: its default on this machine."""
    ariadne_token: Token | None = None
    """Bearer token for Ariadne, or for `compact view` if it asks for one. Never shown. Prefer the environment variable."""
    otlp_endpoint: Address | None = None
    """Address of an OpenTelemetry collector. null: as OpenTelemetry's own variables say."""
    queue_events: Count = 10_000
    """Events that may wait for one exporter. Ariadne and OTLP read the rest from the log later; others drop it."""
    flush_timeout_s: Seconds = 5
    """Longest time `close` waits for the archive and all exporters together."""


class GuardConfig(ConfigSection):
    """Windows that are too small to work in."""

    min_context_tokens: Amount = 4000
    """A smaller window is refused before anything is spent."""
    warn_context_tokens: Amount = 8000
    """A smaller window is reported."""
    min_room_share: Share = 0.02
    """Share of the window that system, developer, tools and protected messages must leave free. 0: no minimum."""


class RecoveryConfig(ConfigSection):
    """What happens when a provider still refuses a request as too long, and when compaction does not help."""

    max_compactions: Amount = 3
    """Compactions per model call after an overflow. 0: the overflow is raised."""
    shrink_share: Share = 0.7
    """Size of the next request after an overflow, as a share of the refused one."""
    breaker_failures: Count = 3
    """Consecutive failures after which the summarizer is paused."""
    breaker_pause_s: Seconds = 60
    """How long it is paused before it is tried again."""
    ineffective_passes: Count = 2
    """Consecutive passes without effect after which no further pass is tried until the session has changed."""
    regrow_share: Share = 0.1
    """How much a session must grow to count as changed, as a share of the window."""


class EconomyConfig(ConfigSection):
    """Passes that are made to save money (`policy.economy: auto`)."""

    min_tokens: Count = 40_000
    """Smaller sessions get no pass below the trigger, and none goes down further than this."""


class MeterConfig(ConfigSection):
    """Token counting."""

    memo_bytes: Amount = 64_000_000
    """Memory for remembered counts."""


class ProxyConfig(ConfigSection):
    """`compact proxy`: where requests go, and how long it may work on one."""

    deadline_ms: Count = 250
    """Longest time for work on a request that fits the window as it is. Then it goes out as the last step left it, and the work
    goes on for the next request."""
    anthropic_url: Address = "https://api.anthropic.com"
    """Where Anthropic's requests go, with or without /v1."""
    openai_url: Address = "https://api.openai.com"
    """Where OpenAI's requests go, with or without /v1."""
    gemini_url: Address = "https://generativelanguage.googleapis.com"
    """Where Gemini's requests go, with or without /v1beta."""
    token: Token | None = None
    """What clients send as X-Compact-Token. Required on addresses that other machines reach. Never shown."""
    max_body_bytes: Count = 64_000_000
    """A longer request of a conversation is refused (413), also when it is unpacked."""
    max_header_bytes: Count = 65_536
    """A request with longer headers is refused (431)."""
    connect_timeout_s: Seconds = 10
    """Longest time for a connection to a provider."""
    silence_timeout_s: Seconds = 900
    """Longest time for which a provider may send nothing before the connection is given up."""


class AllSettings(ConfigSection):
    """The fields of `CompactConfig`."""

    model: ModelName = "gpt-4o"
    """The agent's model. It decides the tokenizer and the window."""
    tenant: Name | None = None
    """Whose sessions they are, where a call names no tenant. null: nobody's in particular. A tenant's records lie below
    `_tenants/{tenant}/` in the archive."""
    max_context_tokens: Count | None = None
    """The window of the configured model and of its aliases. Another known model that a call names brings its own; an
    unknown one uses this. null: from the window table; there an unknown model gets 128000 and a warning."""
    windows: Windows = Field(default_factory=dict)
    """Windows by model. They override the built-in table. `"*"` is every model that has no window of its own here."""
    models: Models = Field(default_factory=dict)
    """Rows of the model table by model, with its fields: window, output, encoding, percent, images, page, call, thinking, native, cache, request, price.
    They are added to the built-in table, and replace fields of its rows. `windows` wins over them. See `compact models`."""
    policy: PolicyConfig = PolicyConfig()
    summary: SummaryConfig = SummaryConfig()
    offload: OffloadConfig = OffloadConfig()
    archive: ArchiveConfig = ArchiveConfig()
    redaction: RedactionConfig = RedactionConfig()
    tracing: TracingConfig = TracingConfig()
    guard: GuardConfig = GuardConfig()
    recovery: RecoveryConfig = RecoveryConfig()
    meter: MeterConfig = MeterConfig()
    economy: EconomyConfig = EconomyConfig()
    proxy: ProxyConfig = ProxyConfig()


SECTIONS: dict[str, type[ConfigSection]] = {
    name: type(field.default)
    for name, field in AllSettings.model_fields.items()
    if isinstance(field.default, ConfigSection)
}
"""All sections by name, in the order of the reference."""

SETTINGS: dict[str, type[ConfigSection]] = {
    **{name: AllSettings for name in AllSettings.model_fields if name not in SECTIONS},
    **{f"{name}.{field}": section for name, section in SECTIONS.items() for field in section.model_fields},
}
"""The dotted path of every setting and the class that defines it, in the order of the reference."""
