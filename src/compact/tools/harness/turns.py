"""The requests of one session as they were sent: every one checked, and its authority held against the first one's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compact.errors import MessageError
from compact.tools.harness.artifacts import as_artifacts
from compact.tools.harness.config import HarnessConfig
from compact.tools.harness.control import control_changes
from compact.tools.harness.report import Report
from compact.tools.harness.stabilizing import validate


def validate_turns(turns: Iterable[Any], config: HarnessConfig | None = None) -> Report:
    """The checks on each turn as it is, and `control_changes` over all of them. One turn at a time is held.

    Args:
        turns: the contexts as they were sent: lists of artifacts or of messages of any dialect.
        config: budget, rules and checks.

    Returns:
        The report of the largest turn, with what is wrong in any turn, and one more check: `control`.

    Raises:
        MessageError: there are no turns, or one holds something that is not a message.
    """
    reader = _Turns(config or HarnessConfig())
    changed = control_changes(reader.read(turns))
    if reader.largest is None:
        raise MessageError("there are no turns to check", hint="Give one context for each request")
    told = {**reader.told, "control": changed}
    checks = [{"name": name, "passed": not details, "details": details} for name, details in told.items()]
    return Report({**reader.largest, "passed": not any(told.values()), "checks": checks})


class _Turns:
    """Checks each turn while it passes by."""

    def __init__(self, config: HarnessConfig) -> None:
        self._config = config
        self.told: dict[str, list[str]] = {name: [] for name, _ in config.named_checks()}
        self.largest: Report | None = None

    def read(self, turns: Iterable[Any]) -> Iterator[list[Mapping[str, Any]]]:
        for number, turn in enumerate(turns, 1):
            context = list(as_artifacts(turn))
            report = validate(context, self._config)
            for check in report.checks:
                self.told[check["name"]] += [f"turn {number}: {detail}" for detail in check["details"]]
            if self.largest is None or report.tokens > self.largest.tokens:
                self.largest = report
            yield context
