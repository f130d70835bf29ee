"""Read JSON reports of `compact replay` and `compact harness` back, with the parts that a comparison needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from compact.tools.replay.running import FORMAT
from compact.tools.transcripts import fail
from compact.tools.transcripts.transcript_file import read_whole

_TOO_LARGE = 1e18
"""No count of a run comes near this; arithmetic on larger integers can overflow."""
_HINT = "Expected what `compact replay --report x.json` or `compact harness --report x.json` wrote"
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "list_type": "a list",
    "model_type": "an object",
    "string_type": "text",
}


def _check_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _TOO_LARGE:
        raise ValueError("a number")
    return value


Number: TypeAlias = Annotated[Any, BeforeValidator(_check_number)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class PolicyNumbers(_Part):
    """All sessions under one policy."""

    policy: str
    failed: Number
    illegal: Number
    over_budget: Number
    control: Number
    calls: Number | None = None
    """Older reports of the same format do not say it."""
    input_tokens: Number
    steps: Number
    cost: Number | None
    cost_cached: Number | None
    retention: Number | None


class RunVerdict(_Part):
    """What went wrong in a session under one policy."""

    illegal: list[Any]
    over_budget: list[Any]
    control: list[Any]
    error: str | None


class ReplayedSession(_Part):
    """One session of a replay."""

    file: str
    session: str
    error: str | None
    runs: list[RunVerdict]

    @property
    def is_fine(self) -> bool:
        """Whether nothing went wrong."""
        return not self.error and not any(
            run.illegal or run.over_budget or run.control or run.error for run in self.runs
        )


class ReplayReport(_Part):
    """A report of `compact replay`."""

    summary: list[PolicyNumbers]
    sessions: list[ReplayedSession]


class CheckVerdict(_Part):
    """One check of the harness."""

    name: str
    passed: bool


class Stability(_Part):
    """The report of the harness on one session. Only a report on several sessions names them."""

    tokens: Number
    kept: list[dict[str, Any]]
    dropped: list[dict[str, Any]]
    checks: list[CheckVerdict]

    @property
    def artifacts(self) -> list[str]:
        """The ids of the session's artifacts, sorted."""
        return sorted(str(line.get("id")) for line in (*self.kept, *self.dropped))


class NamedStability(Stability):
    """One session of a report of the harness on several."""

    file: str
    session: str


class HarnessReport(_Part):
    """A report of `compact harness` on several sessions."""

    sessions: list[NamedStability]


AnyReport: TypeAlias = ReplayReport | HarnessReport | Stability


def read_report(path: Path) -> AnyReport:
    """Read a JSON report of either command.

    Raises:
        TranscriptError: the file cannot be read, is not such a report, or a part is missing or of a wrong type.
    """
    try:
        text = read_whole(path)
        if not text.strip():
            fail(path, "it is empty", hint=_HINT)
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        fail(path, f"it is not JSON: {error}", line=getattr(error, "lineno", None))
    if not isinstance(data, dict):
        fail(path, "it is not a report", hint=_HINT)
    kind: type[AnyReport]
    if data.get("format") == FORMAT:
        kind = ReplayReport
    elif "sessions" in data:
        kind = HarnessReport
    elif "checks" in data:
        kind = Stability
    else:
        fail(path, "it is not a report", hint=_HINT)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        fail(path, f"it is not a complete report: {_explain(error)}", hint=_HINT)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _explain(error: ValidationError) -> str:
    """Name the first part that is wrong: `sessions[0].file is 5, not text`."""
    first = error.errors()[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    if first["type"] == "missing":
        return f"{path[1:]} is missing"
    expected = _EXPECTED.get(first["type"]) or str(first.get("ctx", {}).get("error", first["msg"]))
    return f"{path[1:]} is {first['input']!r:.40}, not {expected}"
