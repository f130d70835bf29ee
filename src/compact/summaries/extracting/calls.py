"""Tells what a call did and how it ended, on one line. Pure."""

from __future__ import annotations

import re

from compact.messages.cues import NEXT, OUTCOME, TROUBLE
from compact.summaries.extracting.session_reading import Done, Reading, flat
from compact.summaries.voices import defuse, quote

TODO_KEYS = ("todos", "items", "tasks", "plan")
"""The arguments of a call that updates a task list."""
_OUTCOME_CHARS = 160
LOOKED_AT = 2_000
"""Characters of a line that are read to shorten it."""
_LOOKING = re.compile(
    r"(?:cd \S+ *(?:&&|;) *)?(?:grep|rg|find|cat|head|tail|ls|tree|wc|sed -n|git (?:grep|log|show|diff|blame)) [^;&]*"
)
_SHELL_SAYS = re.compile(r"[\w./-]+: .{0,200}(?:No such file|Permission denied|Is a directory|not found)")
"""How a command line tool reports an error: its name first."""


def call_text(done: Done, limit: int = 180) -> str:
    """A call on one line: its tool, and its short arguments."""
    if done.command:
        return f"{defuse(done.name)} `{flat(defuse(done.command[:LOOKED_AT]), limit)}`"
    if not done.arguments:
        return flat(
            defuse(f"{done.name} {done.raw[:LOOKED_AT]}" if done.raw not in ("", "{}") else done.name), limit
        )
    short = [
        f"{key}={flat(str(value), 80)}" for key, value in done.arguments.items() if len(str(value)) < 200
    ]
    return flat(defuse(f"{done.name} {', '.join(short)}"), limit)


def runs(done: Done) -> bool:
    """Whether a call is a command or a query: neither an edit, nor a look at a file, nor a task list."""
    return not (done.writes or is_task_list(done) or (done.path and not done.command))


def outcome_of(done: Done, reading: Reading, limit: int = _OUTCOME_CHARS) -> str:
    """What a call led to, quoted: the line that reports an error, else the last line of a command, else the first line.

    Of a result in the archive, the lines beside its pointer tell it, or else what the agent said of it.
    """
    lines = [line.strip() for line in done.shown.splitlines() if line.strip()]
    if not lines and done.stored_in:
        said = next((said for said in reading.said if said.place > done.place), None)
        tells = (
            said is not None
            and OUTCOME.search(said.text)
            and not (NEXT.search(said.text) or leads_on(said.text))
        )
        return f"{flat(said.text, limit)} (in {done.stored_in})" if said and tells else f"in {done.stored_in}"
    if not lines:
        return "no result" if done.result is None else "empty"
    if _only_looks(done):
        return _quote_line(lines[0], limit)
    trouble = next((line for line in lines if TROUBLE.search(line)), None)
    plain = lines[-1] if done.command else lines[0]
    return _quote_line(trouble or plain, limit)


def _quote_line(line: str, limit: int) -> str:
    return quote(flat(defuse(line[:LOOKED_AT]), limit))


def has_failed(done: Done) -> bool:
    """Whether a call failed. If it shows a file, only the beginning counts: the file may speak of errors."""
    if done.is_error:
        return True
    head = done.shown[:400]
    if done.path or _only_looks(done):
        return TROUBLE.match(head.lstrip("<[( ")) is not None or _SHELL_SAYS.match(head) is not None
    return TROUBLE.search(head) is not None


def _only_looks(done: Done) -> bool:
    """Whether a command only shows content, so that its output says nothing about its outcome."""
    return bool(done.command) and _LOOKING.fullmatch(done.command) is not None


def key_of(done: Done) -> str:
    """What two calls have in common that do the same."""
    return f"{done.name} {done.command or done.path or done.raw}"


def is_task_list(done: Done) -> bool:
    """Whether a call only updates a task list."""
    return any(isinstance(done.arguments.get(key), list) for key in TODO_KEYS)


def leads_on(text: str) -> bool:
    """Whether a line only leads to what follows it."""
    return text.rstrip("*_ ").endswith((":", "："))
