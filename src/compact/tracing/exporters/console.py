"""One readable line per event on standard error, in colour on a terminal unless NO_COLOR is set."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from compact.tracing.exporters.exporter import EventDict, Exporter, Sent

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
    """Writes to a stream. The default is standard error, which keeps a program's own output clean."""

    name = "console"

    def __init__(self, stream: TextIO | None = None, colour: bool | None = None) -> None:
        self._stream = stream
        self._colour = colour

    def export(self, events: Sequence[EventDict]) -> Sent:
        """See `Exporter.export`."""
        stream = self._stream or sys.stderr
        colour = wants_colour(stream) if self._colour is None else self._colour
        stream.write("".join(f"{line(event, colour)}\n" for event in events))
        stream.flush()
        return Sent(len(events))


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal and its user has not declined colours (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def line(event: EventDict, colour: bool = False) -> str:
    """Format an event as one line: time, session, step, kind, details and duration."""
    kind = str(event["name"]).removeprefix("compact.")
    details = _describe(kind, event["properties"])
    began, ended = (datetime.fromisoformat(str(event[key])) for key in ("started_at", "ended_at"))
    took_ms = (ended - began).total_seconds() * 1000
    duration = f" ({took_ms:,.0f} ms)" if took_ms >= 1 else ""
    text = f"{kind:<16} {_one_line(details)}{duration}"
    head = f"{str(event['started_at'])[11:23]} {_one_line(str(event['session_id']), 40)} #{event['step']}"
    if not colour:
        return f"{head} {text}"
    return f"\x1b[2m{head}{_RESET} {_COLOURS.get(kind, '')}{text}{_RESET}"


def _one_line(text: str, limit: int = _NOTE_CHARS) -> str:
    """Remove control characters. An event may quote a tool's output, and a terminal obeys escape codes."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."


_TEMPLATES = {
    "token_estimate": "{t_est:,} of {max_tokens:,} tokens, {usage_pct:.0%} ({model})",
    "archival": "saved {file_path}",
    "offload": "{tool_name}: {tokens_before:,} -> {tokens_after:,} tokens, {file_path}",
    "calls_shrunk": "{tool_name}: {tokens_before:,} -> {tokens_after:,} tokens, {file_path}",
    "summary_created": "{strategy}: {input_messages} messages in {summary_tokens:,} tokens, {compression_ratio:.1%} of them",
    "pruned_messages": "{pruned_count} messages left: {tokens_before:,} -> {tokens_after:,} tokens; ",
    "started": "{reason}",
    "finished": "{outcome}: {tokens_before:,} -> {tokens_after:,} tokens",
    "error": "{error_type}: {message} (instead: {fallback})",
    "warning": "{code} ({severity}): {message}",
    "recovery": "attempt {attempt}: {action}",
}


def _describe(kind: str, properties: Mapping[str, Any]) -> str:
    p = properties
    if kind == "trigger_decision":
        return _describe_decision(p)
    if kind not in _TEMPLATES:
        return ", ".join(f"{key}={value}" for key, value in p.items())
    text = _TEMPLATES[kind].format_map(p)
    if kind == "started" and p["note"]:
        text += f": {p['note']}"
    if kind == "pruned_messages":
        text += ", ".join(f"{count} {layer}" for layer, count in p["layers"].items())
    if kind == "recovery" and p["learned_limit"] is not None:
        text += f", limit {p['learned_limit']:,}"
    return text


def _describe_decision(p: Mapping[str, Any]) -> str:
    money = "" if p.get("economy") is None else f"; {_describe_economy(p['economy'])}"
    if not p["triggered"]:
        return f"nothing to do: {p['reason']}{money}"
    kept = p["planned"]["kept"]
    return (
        f"acts: {p['reason']}; plans to keep {kept['pinned']} pinned, {kept['recent_turns']} turns, "
        f"{kept['tool_pairs']} pairs; {p['planned']['pruned_count']} messages may go{money}"
    )


def _describe_economy(economy: Mapping[str, Any]) -> str:
    """Say in money why a pass is made or not."""
    cost, calls = economy["cost"], economy["calls_to_repay"]
    if cost <= 0:
        return f"cache {economy['cache']}: a pass saves ${-cost:.4f} in this call"
    repays = "never repays" if calls is None else f"repays after {calls:g} calls"
    return f"cache {economy['cache']}: a pass costs ${cost:.4f} more in this call and {repays}"
