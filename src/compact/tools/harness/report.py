"""The report of one session: plain data, whose fields can be read as attributes too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compact.tools.harness.entries import Entry


class Report(dict[str, Any]):
    """`{"passed", "tokens", "budget", "checks", "kept", "dropped", "masked"}`: what is written as JSON."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return bool(self["passed"])

    @property
    def tokens(self) -> int:
        """What the context costs."""
        return int(self["tokens"])

    @property
    def budget(self) -> int:
        """What it may cost."""
        return int(self["budget"])

    @property
    def checks(self) -> list[dict[str, Any]]:
        """`{"name", "passed", "details"}` each."""
        return list(self["checks"])

    @property
    def kept(self) -> list[dict[str, Any]]:
        """`{"id", "kind", "tokens", "reason"}` each, in the order of the context; `authority` and `masked` where any."""
        return list(self["kept"])

    @property
    def dropped(self) -> list[dict[str, Any]]:
        """`{"id", "kind", "tokens", "reason"}` each, in time."""
        return list(self["dropped"])

    @property
    def masked(self) -> int:
        """How many spans of what is kept were masked."""
        return int(self["masked"])


def report_of(
    *,
    tokens: int,
    budget: int,
    checks: Mapping[str, Sequence[str]],
    kept: Sequence[tuple[Entry, str]],
    dropped: Sequence[tuple[Entry, str]],
) -> Report:
    """The report out of what each check said and why each artifact was kept or dropped."""
    return Report(
        passed=not any(checks.values()),
        tokens=tokens,
        budget=budget,
        checks=[
            {"name": name, "passed": not details, "details": list(details)}
            for name, details in checks.items()
        ],
        kept=[_line(entry, reason, full=True) for entry, reason in kept],
        dropped=[_line(entry, reason, full=False) for entry, reason in dropped],
        masked=sum(entry.masked for entry, _ in kept),
    )


def _line(entry: Entry, reason: str, full: bool) -> dict[str, Any]:
    line = {"id": entry.id, "kind": entry.kind, "tokens": entry.tokens, "reason": reason}
    if full and entry.masked:
        line["masked"] = entry.masked
    if full and entry.authority is not None:
        line["authority"] = entry.authority
    return line
