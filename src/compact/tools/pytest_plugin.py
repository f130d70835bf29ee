"""The pytest plugin: `compact_session` and `assert_stable`, for tests of agents.

Pytest loads it in every project that has compact installed, so it imports nothing but pytest until it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compact.runtime.manager import CompactManager

__all__ = ["StableSession", "assert_stable", "compact_session"]

_MOST_PROBLEMS = 10
_START = datetime(2026, 1, 1, tzinfo=UTC)


def assert_stable(
    messages: Any,
    budget: int | None = None,
    *,
    model: str = "gpt-4o",
    tools: Any = None,
    system: Any = None,
    pii: Any = "none",
    source: Any = None,
) -> None:
    """Assert that a context may be sent.

    It is legal for its provider, takes at most `budget` tokens including tools and system prompt, and starts with its system
    messages. With `pii` ("digits", "standard", a rule), it has no personal data. With `source`, the whole session so far, its
    system messages are the session's own, compared by hash.

    Raises:
        AssertionError: the context is not stable; lists the problems.
        MessageError: this is not a list, or an entry is not a message.
        ConfigError: the budget is not a whole number of tokens > 0.
    """
    __tracebackhide__ = True
    from compact.messages import dialects, legality
    from compact.tokens import estimate
    from compact.tools.harness import HarnessConfig, validate
    from compact.tools.harness.config import check_whole

    if budget is not None:
        check_whole("budget", budget, 1, "a whole number of tokens > 0")
    if isinstance(messages, dict):
        messages = messages.get("artifacts", messages)
    dialects.require_list(messages)
    known = dialects.detect(messages)
    problems = [
        f"message {one.index}: {one.rule}: {one.message}" for one in legality.violations(messages, known.NAME)
    ]
    if budget is not None:
        total = estimate(messages, model, tools, system=system, dialect=known).total
        if total > budget:
            problems.append(f"{total:,} tokens are {total - budget:,} more than the budget of {budget:,}")
    # Among messages, the host may put a system message anywhere; among artifacts it must come first.
    order = ["order"] if known.NAME == "harness" else []
    report = validate(messages, HarnessConfig(pii=pii, checks=["pii", *order]), source=source, system=system)
    problems += [f"{check['name']}: {detail}" for check in report.checks for detail in check["details"]]
    if not order:
        problems += [f"order: {what}" for what in _lost(messages, source)]
    if problems:
        shown = problems[:_MOST_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        raise AssertionError("the context is not stable:\n" + "\n".join(f"  {line}" for line in shown))


class StableSession:
    """One session with an archive in memory and a clock that ticks evenly, so that tests are deterministic."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self._manager: CompactManager | None = None
        self._settings: dict[str, Any] = {}

    def configure(self, **settings: Any) -> StableSession:
        """Change settings of `CompactConfig` before the first call: `max_context_tokens=8_000`, `policy={...}`.

        Raises:
            RuntimeError: the session is already in use.
        """
        if self._manager is not None:
            raise RuntimeError("configure() must come before the first preflight()")
        self._settings.update(settings)
        return self

    @property
    def manager(self) -> CompactManager:
        """The manager of this session."""
        if self._manager is None:
            from compact.config import CompactConfig
            from compact.runtime.manager import CompactManager

            settings = {"archive": {"adapter": "memory"}, **self._settings}
            ticks = count(1)
            self._manager = CompactManager(
                CompactConfig(**settings).updated(policy={"background_pct": None}),  # the same in every run
                clock=lambda: _START + timedelta(milliseconds=next(ticks)),
            )
        return self._manager

    def preflight(self, messages: Any, tools: Any = None, *, system: Any = None) -> Any:
        """Return what would be sent, and assert that it is stable.

        Raises:
            AssertionError: the context is not stable.
        """
        __tracebackhide__ = True
        sent = self.manager.preflight(self.session_id, messages, tools, system=system)
        config = self.manager.config
        budget = config.budget(self.manager.estimate(sent).max_tokens)
        assert_stable(sent, budget, model=config.model, tools=tools, system=system, source=messages)
        return sent

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every event so far."""
        # From the archive, which has them all after `flush`; an exporter has its own thread and may be behind.
        self.manager.flush()
        return [json.loads(line) for line in self.manager.archive.lines(self.session_id)]

    @property
    def steps(self) -> int:
        """Number of compactions."""
        return len(self.manager.archive.steps(self.session_id))

    def close(self) -> None:
        """Stop background work."""
        if self._manager is not None:
            self._manager.close()


@pytest.fixture
def compact_session(request: pytest.FixtureRequest) -> Iterator[StableSession]:
    """A fresh session for each test, in memory: `compact_session.preflight(messages)`."""
    session = StableSession(request.node.name)
    yield session
    session.close()


def _lost(messages: Any, source: Any) -> list[str]:
    """Check that the first system message comes first, and that all are those of the source."""
    from compact.tools.harness import as_artifacts
    from compact.tools.harness.artifacts import id_of
    from compact.tools.harness.control import differences, fingerprints

    artifacts = list(as_artifacts(messages))
    names = [id_of(one, place, one["kind"]) for place, one in enumerate(artifacts)]
    first = next((place for place, one in enumerate(artifacts) if one["kind"] == "system"), 0)
    problems = [f"{names[first]} (system) stands behind {names[0]}"] if first else []
    if source is not None:
        problems += differences(fingerprints(as_artifacts(source)), fingerprints(artifacts))
    return problems
