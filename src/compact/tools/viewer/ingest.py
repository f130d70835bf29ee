"""Ariadne's `/ingest` contract: what is accepted, and how the page shows it.

A body is one event or `{"batch": [...]}`. One bad event refuses the whole body. Unknown keys are dropped, so compact puts
everything into a span's `data`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

MAX_BODY_BYTES = 256 * 1024

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an event is refused: where, and what is wrong."""

    path: list[str | int]
    message: str


class BodyRefused(Exception):
    """A body that is not accepted. Nothing of it was taken."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in faults))
        self.faults = faults


def _check_moment(text: str) -> str:
    if not _MOMENT.fullmatch(text):
        raise ValueError("expected a time in UTC that ends in Z")
    datetime.fromisoformat(text)
    return text


Id: TypeAlias = Annotated[str, Field(min_length=1)]
Moment: TypeAlias = Annotated[str, AfterValidator(_check_moment)]


class _Event(BaseModel):
    """What traces and spans share. Optional keys are left out, never null; the defaults are not sent on."""

    model_config = ConfigDict(strict=True)

    trace_id: Id
    name: str = ""
    started_at: Moment = ""
    ended_at: Moment = ""

    @field_validator("ended_at")
    @classmethod
    def _is_not_before_start(cls, ended: str, info: ValidationInfo) -> str:
        started = info.data.get("started_at")
        if started and datetime.fromisoformat(ended) < datetime.fromisoformat(started):
            raise ValueError("must not be before started_at")
        return ended


class _Trace(_Event):
    type: Literal["trace"]
    group_id: str = ""
    metadata: dict[str, str] = {}


class _Span(_Event):
    type: Literal["span"]
    span_id: Id
    parent_id: str = ""
    kind: str = ""
    data: dict[str, Any] = {}
    status: Literal["ok", "error"] = "ok"


_BATCH = TypeAdapter(list[Annotated[_Trace | _Span, Field(discriminator="type")]])


def accept(body: bytes) -> list[dict[str, Any]]:
    """Parse the events of a body, without unknown keys.

    Raises:
        BodyRefused: an event breaks the contract; says which and how.
    """
    try:
        data = _without_surrogates(json.loads(body, parse_constant=_refuse_number, parse_float=_finite))
    except (ValueError, RecursionError):
        raise BodyRefused(Fault([], "the body is not JSON")) from None
    if not isinstance(data, Mapping):
        raise BodyRefused(Fault([], "expected one event or {'batch': [...]}"))
    batch = data.get("batch") if "batch" in data else [data]
    if not isinstance(batch, list):
        raise BodyRefused(Fault(["batch"], "expected a list of events"))
    try:
        return [event.model_dump(exclude_unset=True) for event in _BATCH.validate_python(batch)]
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        raise BodyRefused(*(_fault(each, "batch" in data) for each in faults)) from None


def _fault(error: Any, in_batch: bool) -> Fault:
    # The location is the index, the type of the event, and the path in it; without a known type only the index.
    index, *path = error["loc"]
    path = ["type"] if error["type"].startswith("union_tag") else path[1:]
    return Fault(["batch", index, *path] if in_batch else path, error["msg"])


def _refuse_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    found = float(digits)
    if not isfinite(found):
        _refuse_number(digits)
    return found


def _without_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which can be neither shown nor sent on."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(entry) for entry in value]
    return value


def as_event(span: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a span to the form of a line of `events.jsonl`, as far as its `data` allows."""
    data = dict(span.get("data") or {})
    payload: dict[str, Any] = {}
    if isinstance(data.get("payload"), Mapping):
        payload = dict(data.pop("payload"))
    if "output_text" in data:
        payload.setdefault("summary", data.pop("output_text"))
    step, properties = data.pop("step", 0), data.pop("properties", None)
    session_id = data.pop("session_id", None)
    return {
        "name": span.get("name") or span.get("kind") or "span",
        "session_id": session_id if isinstance(session_id, str) else None,
        "step": step if type(step) is int else 0,
        "trace_id": span["trace_id"],
        "span_id": span["span_id"],
        "parent_id": span.get("parent_id"),
        "started_at": span.get("started_at"),
        "ended_at": span.get("ended_at"),
        "status": span.get("status", "ok"),
        "properties": {**data, **properties} if isinstance(properties, Mapping) else data,
        "payload": payload,
    }
