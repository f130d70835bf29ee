"""One readable line per event, on standard error: colour on a terminal, unless NO_COLOR is set."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from compact.tracing.exporters.protocol import Exporter, Sent, Told

_RESET = "\x1b[0m"
_COLOURS = {
    "token_estimate": "\x1b[2m",
    "trigger_decision": "\x1b[36m",
    "summary_created": "\x1b[32m",
    "pruned_messages": "\x1b[32m",
    "finished": "\x1b[1;32m",
    "warning": "\x1b[33m",
    "recovery": "\x1b[33m",
    "error": "\x1b[1;31m",
}
_NOTE_CHARS = 160


class ConsoleExporter(Exporter):
    """Writes to a stream; by default standard error, so that a program's own output stays its own."""

    name = "console"

    def __init__(self, stream: TextIO | None = None, colour: bool | None = None) -> None:
        self._stream = stream
        self._colour = colour

    def export(self, events: Sequence[Told]) -> Sent:
        """See `Exporter.export`."""
        stream = self._stream or sys.stderr
        colour = wants_colour(stream) if self._colour is None else self._colour
        stream.write("".join(f"{line(event, colour)}\n" for event in events))
        stream.flush()
        return Sent(len(events))


def from_settings(_: object) -> ConsoleExporter:
    """The exporter that the configuration describes."""
    return ConsoleExporter()


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user did not decline colours (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def line(event: Told, colour: bool = False) -> str:
    """An event in one line: when, which session, which step, what, how long."""
    kind = str(event["name"]).removeprefix("compact.")
    told = _SAYS.get(kind, _says_anything)(event["properties"])
    took = _milliseconds(event)
    duration = f" ({took:,.0f} ms)" if took >= 1 else ""
    text = f"{kind:<16} {_one_line(told)}{duration}"
    head = f"{str(event['started_at'])[11:23]} {_one_line(str(event['session_id']), 40)} #{event['step']}"
    if not colour:
        return f"{head} {text}"
    return f"\x1b[2m{head}{_RESET} {_COLOURS.get(kind, '')}{text}{_RESET}"


def _milliseconds(event: Told) -> float:
    began, ended = (datetime.fromisoformat(str(event[key])) for key in ("started_at", "ended_at"))
    return (ended - began).total_seconds() * 1000


def _one_line(text: str, limit: int = _NOTE_CHARS) -> str:
    """Without control characters: an event may quote what a tool wrote, and a terminal obeys escape codes."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."


def _estimate(p: Mapping[str, Any]) -> str:
    return f"{p['t_est']:,} of {p['max_tokens']:,} tokens, {p['usage_pct']:.0%} ({p['model']})"


def _decision(p: Mapping[str, Any]) -> str:
    if not p["triggered"]:
        return f"nothing to do: {p['reason']}"
    kept = p["kept"]
    return (
        f"acts: {p['reason']}; keeps {kept['pinned']} pinned, {kept['recent_turns']} turns, "
        f"{kept['tool_pairs']} pairs; {p['pruned_count']} messages may go"
    )


def _moved(p: Mapping[str, Any]) -> str:
    return f"{p['tool_name']}: {p['tokens_before']:,} -> {p['tokens_after']:,} tokens, {p['file_path']}"


def _summary(p: Mapping[str, Any]) -> str:
    return (
        f"{p['strategy']}: {p['input_messages']} messages in {p['summary_tokens']:,} tokens, "
        f"{p['compression_ratio']:.1%} of them"
    )


def _pruned(p: Mapping[str, Any]) -> str:
    layers = ", ".join(f"{count} {layer}" for layer, count in p["layers"].items())
    return (
        f"{p['pruned_count']} messages left: {p['tokens_before']:,} -> {p['tokens_after']:,} tokens; {layers}"
    )


def _finished(p: Mapping[str, Any]) -> str:
    return f"{p['outcome']}: {p['tokens_before']:,} -> {p['tokens_after']:,} tokens"


def _recovery(p: Mapping[str, Any]) -> str:
    limit = p["learned_limit"]
    return f"attempt {p['attempt']}: {p['action']}" + (f", limit {limit:,}" if limit is not None else "")


def _says_anything(p: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in p.items())


_SAYS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "token_estimate": _estimate,
    "trigger_decision": _decision,
    "archival": lambda p: f"saved {p['file_path']}",
    "offload": _moved,
    "calls_shrunk": _moved,
    "summary_created": _summary,
    "pruned_messages": _pruned,
    "started": lambda p: str(p["reason"]) + (f": {p['note']}" if p["note"] else ""),
    "finished": _finished,
    "error": lambda p: f"{p['error_type']}: {p['message']} (instead: {p['fallback']})",
    "warning": lambda p: f"{p['code']} ({p['severity']}): {p['message']}",
    "recovery": _recovery,
}
