"""The report on one session: plain data whose fields are attributes too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compact.tools.harness.artifacts import Entry


class Report(dict[str, Any]):
    """`{"passed", "tokens", "budget", "checks", "kept", "dropped", "masked"}`: the JSON report."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return bool(self["passed"])

    @property
    def tokens(self) -> int:
        """Size of the context."""
        return int(self["tokens"])

    @property
    def budget(self) -> int:
        """Its maximum size."""
        return int(self["budget"])

    @property
    def checks(self) -> list[dict[str, Any]]:
        """One `{"name", "passed", "details"}` for each check."""
        return list(self["checks"])

    @property
    def kept(self) -> list[dict[str, Any]]:
        """One `{"id", "kind", "tokens", "reason"}` each, in context order, with `authority` and `masked` if any."""
        return list(self["kept"])

    @property
    def dropped(self) -> list[dict[str, Any]]:
        """One `{"id", "kind", "tokens", "reason"}` each, in session order."""
        return list(self["dropped"])

    @property
    def masked(self) -> int:
        """Number of masked spans in what is kept."""
        return int(self["masked"])


def check_lines(checks: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The report's part on checks, from what each check found."""
    return [
        {"name": name, "passed": not details, "details": list(details)} for name, details in checks.items()
    ]


def artifact_line(entry: Entry, reason: str, full: bool) -> dict[str, Any]:
    """The report's line on an artifact. Only a full one says what was masked, and with which authority."""
    line = {"id": entry.id, "kind": entry.kind, "tokens": entry.tokens, "reason": reason}
    if full and entry.masked:
        line["masked"] = entry.masked
    if full and entry.authority is not None:
        line["authority"] = entry.authority
    return line
