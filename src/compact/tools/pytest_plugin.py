"""The pytest plugin: `compact_session` and `assert_stable`, for tests of agents.

Loaded by every test run of whoever has compact installed: it imports nothing but pytest until it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compact.runtime.manager import CompactManager
    from compact.tools.fakes import CapturingExporter

__all__ = ["StableSession", "assert_stable", "compact_session"]

_MOST_PROBLEMS = 10


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
    """Asserts that a context may be sent as it is.

    It is legal for its provider, costs no more than `budget` tokens with tools and system prompt, and its system messages
    stand first. With `pii` ("digits", "standard", a rule) no personal data is in it; with `source`, the whole session so far,
    its system messages are the session's own, compared by hash.

    Raises:
        AssertionError: it is not; says everything that is wrong.
        MessageError: it is no list, or an entry is not a message.
        ConfigError: the budget is not a whole number of tokens > 0.
    """
    __tracebackhide__ = True
    problems = _problems(messages, budget, model, tools, system, pii, source)
    if problems:
        shown = problems[:_MOST_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        raise AssertionError("the context is not stable:\n" + "\n".join(f"  {line}" for line in shown))


class StableSession:
    """One session with compact in memory and a clock that ticks evenly, so that a test gives the same result each time."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self._manager: CompactManager | None = None
        self._exporter: CapturingExporter | None = None
        self._settings: dict[str, Any] = {}

    def configure(self, **settings: Any) -> StableSession:
        """Settings of `CompactConfig`, before the first call: `max_context_tokens=8_000`, `policy={...}`.

        Raises:
            RuntimeError: the session was used already.
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
            from compact.tools.fakes import CapturingExporter

            settings = {"archive": {"adapter": "memory"}, **self._settings}
            self._exporter = CapturingExporter()
            self._manager = CompactManager(
                CompactConfig(**settings), exporters=[self._exporter], clock=_EvenClock()
            )
        return self._manager

    def preflight(self, messages: Any, tools: Any = None, *, system: Any = None) -> Any:
        """What would be sent, asserted to be stable against the session that it was made of.

        Raises:
            AssertionError: it is not.
        """
        __tracebackhide__ = True
        sent = self.manager.preflight(self.session_id, messages, tools, system=system)
        config = self.manager.config
        window = self.manager.estimate(sent).max_tokens
        budget = config.budget(window)
        assert_stable(sent, budget, model=config.model, tools=tools, system=system, source=messages)
        return sent

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every event so far."""
        self.manager.flush()
        assert self._exporter is not None
        return [dict(event) for event in self._exporter.events]

    @property
    def steps(self) -> int:
        """How many compactions there were."""
        return len(self.manager.archive.steps(self.session_id))

    def close(self) -> None:
        """Ends what runs in the background."""
        if self._manager is not None:
            self._manager.close()


@pytest.fixture
def compact_session(request: pytest.FixtureRequest) -> Iterator[StableSession]:
    """A session of its own for each test, in memory: `compact_session.preflight(messages)`."""
    session = StableSession(request.node.name)
    yield session
    session.close()


class _EvenClock:
    def __init__(self) -> None:
        self._ticks = 0

    def __call__(self) -> datetime:
        self._ticks += 1
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self._ticks)


def _problems(
    messages: Any, budget: int | None, model: str, tools: Any, system: Any, pii: Any, source: Any
) -> list[str]:
    from compact.messages import dialects, legality
    from compact.tokens import estimate
    from compact.tools.harness import HarnessConfig, validate

    _check_budget(budget)
    if isinstance(messages, dict):
        messages = messages.get("artifacts", messages)
    dialects.require_list(messages)
    known = dialects.detect(messages)
    found = [
        f"message {one.index}: {one.rule}: {one.message}" for one in legality.violations(messages, known.NAME)
    ]
    if budget is not None:
        total = estimate(messages, model, tools, system=system, dialect=known).total
        if total > budget:
            found.append(f"{total:,} tokens are {total - budget:,} more than the budget of {budget:,}")
    # Messages may have a system message among them, where the host put it; artifacts may not.
    order = ["order"] if known.NAME == "harness" else []
    report = validate(messages, HarnessConfig(pii=pii, checks=["pii", *order]), source=source, system=system)
    found += [f"{check['name']}: {detail}" for check in report.checks for detail in check["details"]]
    return found if order else found + [f"order: {what}" for what in _lost(messages, source)]


def _check_budget(budget: Any) -> None:
    if budget is None or (isinstance(budget, int) and not isinstance(budget, bool) and budget > 0):
        return
    from compact.errors import ConfigError

    raise ConfigError(f"budget must be a whole number of tokens > 0, got {budget!r:.80}", path="budget")


def _lost(messages: Any, source: Any) -> list[str]:
    """What became of the system messages: the first must stand first, and all must be those of the source."""
    from compact.tools.harness import as_artifacts
    from compact.tools.harness.control import differences, fingerprints

    artifacts = list(as_artifacts(messages))
    first = next((place for place, one in enumerate(artifacts) if one["kind"] == "system"), 0)
    told = [f"{artifacts[first]['id']} (system) stands behind {artifacts[0]['id']}"] if first else []
    if source is not None:
        told += differences(fingerprints(as_artifacts(source)), fingerprints(artifacts))
    return told
