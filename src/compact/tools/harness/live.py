"""Validate running sessions: every request, before it is sent, by the checks of the harness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from compact.tokens import Meter
from compact.tools.harness.artifacts import as_artifacts
from compact.tools.harness.config import HarnessConfig
from compact.tools.harness.control import Fingerprint, differences, fingerprints, in_order
from compact.tools.harness.report import Report, check_lines
from compact.tools.harness.stabilizing import validate

if TYPE_CHECKING:
    from compact.runtime.manager import CompactManager

CONTROL = "control"
"""The check that compares a request's system messages with those of the session's first request."""


class SessionValidator:
    """Checks the requests of running sessions: personal data, budget, order, and control. Thread-safe.

    It changes nothing. With a `manager`, the manager's model, window and tokenizer decide what fits; otherwise
    `config.budget` and `config.model`. The system messages of a session's first request are remembered as hashes, and
    those of every later one are compared with them. A session that ended is forgotten by `forget`.
    """

    def __init__(self, config: HarnessConfig | None = None, *, manager: CompactManager | None = None) -> None:
        settings = config or HarnessConfig()
        if manager is None:
            self._meter = Meter(settings.model, count=settings.count_tokens)
        else:
            self._meter = manager.meter()
            window = manager.models.window(None).tokens
            settings = replace(
                settings, budget=max(1, manager.config.budget(window)), model=self._meter.model
            )
        self.config = settings
        """What is checked, and the budget."""
        self._first: dict[str, list[Fingerprint]] = {}
        self._lock = Lock()

    def check(
        self, session_id: str, messages: Sequence[Any], tools: Any = None, *, system: Any = None
    ) -> Report:
        """Check the messages of a request as they are about to be sent, in any dialect.

        `tools`, and a `system` prompt outside the list, are part of the request and are counted.

        Returns:
            A report as of `validate`, with one more check: `control`.

        Raises:
            MessageError: an entry is not a message; names its index.
        """
        artifacts = list(as_artifacts(messages, system=system))
        tokens = self._meter.estimate(messages, tools, system=system).total
        report = validate(artifacts, self.config, tokens=tokens)
        found = fingerprints(artifacts, [line["id"] for line in report.kept])
        with self._lock:
            first = self._first.setdefault(session_id, in_order(found))
        problems = {check["name"]: check["details"] for check in report.checks}
        problems[CONTROL] = differences(first, found)
        return Report({**report, "passed": not any(problems.values()), "checks": check_lines(problems)})

    def forget(self, session_id: str) -> None:
        """Forget a session: its next request is the first one."""
        with self._lock:
            self._first.pop(session_id, None)
