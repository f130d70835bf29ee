"""Ariadne's `/ingest` contract: what is accepted, and the form in which the page shows it.

A body is one event or `{"batch": [...]}`; one bad event refuses the whole body. Keys that the contract does not know are
dropped, so everything that compact has to say lies in a span's `data`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, NoReturn

MAX_BODY_BYTES = 256 * 1024

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_COMMON = frozenset({"type", "trace_id", "name", "started_at", "ended_at"})
_KEYS = {
    "trace": _COMMON | {"group_id", "metadata"},
    "span": _COMMON | {"span_id", "parent_id", "kind", "data", "status"},
}
_TEXTS = ("name", "group_id", "parent_id", "kind")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an event is refused: where, and what is wrong."""

    path: list[str | int]
    message: str


class Refused(Exception):
    """A body that is not accepted. Nothing of it was taken."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in faults))
        self.faults = faults


def accepted(body: bytes) -> list[dict[str, Any]]:
    """The events of a body, without the keys that the contract does not know.

    Raises:
        Refused: one of them breaks the contract; says which and how.
    """
    try:
        data = _whole(json.loads(body, parse_constant=_no_number, parse_float=_finite))
    except (ValueError, RecursionError):
        raise Refused([Fault([], "the body is not JSON")]) from None
    if not isinstance(data, Mapping):
        raise Refused([Fault([], "expected one event or {'batch': [...]}")])
    batch = data.get("batch") if "batch" in data else [data]
    if not isinstance(batch, list):
        raise Refused([Fault(["batch"], "expected a list of events")])
    prefixes: list[list[str | int]] = [["batch", n] if "batch" in data else [] for n in range(len(batch))]
    faults = [
        Fault([*prefix, *fault.path], fault.message)
        for prefix, event in zip(prefixes, batch, strict=True)
        for fault in _faults(event)
    ]
    if faults:
        raise Refused(faults)
    return [{key: value for key, value in event.items() if key in _KEYS[event["type"]]} for event in batch]


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    found = float(digits)
    if not isfinite(found):
        _no_number(digits)
    return found


def _whole(value: Any) -> Any:
    """The value, with a replacement for half characters, which can be neither shown nor sent on."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF_CHARACTER.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(key): _whole(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    return value


def _faults(event: Any) -> list[Fault]:
    if not isinstance(event, Mapping):
        return [Fault([], "expected an object")]
    kind = event.get("type")
    if kind not in ("trace", "span"):
        return [Fault(["type"], "must be 'trace' or 'span'")]
    found = [Fault([key], "must be a non-empty text") for key in _ids(kind) if not _is_id(event.get(key))]
    found += [
        Fault([key], "must be a text; leave it out where there is none")
        for key in _TEXTS
        if key in _KEYS[kind] and key in event and not isinstance(event[key], str)
    ]
    found += _time_faults(event)
    if kind == "span":
        found += _span_faults(event)
    elif "metadata" in event:
        found += _metadata_faults(event["metadata"])
    return found


def _ids(kind: str) -> tuple[str, ...]:
    return ("trace_id",) if kind == "trace" else ("trace_id", "span_id")


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _span_faults(event: Mapping[str, Any]) -> list[Fault]:
    found = []
    if "data" in event and not isinstance(event["data"], Mapping):
        found.append(Fault(["data"], "must be an object"))
    if "status" in event and event["status"] not in ("ok", "error"):
        found.append(Fault(["status"], "must be 'ok' or 'error'"))
    return found


def _metadata_faults(metadata: Any) -> list[Fault]:
    if not isinstance(metadata, Mapping):
        return [Fault(["metadata"], "must be an object")]
    return [
        Fault(["metadata", str(key)], "must be a text")
        for key, value in metadata.items()
        if not isinstance(value, str)
    ]


def _time_faults(event: Mapping[str, Any]) -> list[Fault]:
    found = [
        Fault([key], "must be a time in UTC that ends in Z")
        for key in ("started_at", "ended_at")
        if key in event and _moment(event[key]) is None
    ]
    started, ended = (_moment(event.get(key)) for key in ("started_at", "ended_at"))
    if started is not None and ended is not None and ended < started:
        found.append(Fault(["ended_at"], "must not be before started_at"))
    return found


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def as_event(span: Mapping[str, Any]) -> dict[str, Any]:
    """A span as a line of `events.jsonl` would say it, as far as its `data` tells; for the page."""
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
