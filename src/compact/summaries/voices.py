"""Who speaks in a summary. Pure.

A summary is read as the agent's own notes, so what a tool said must not read like one of them. It is quoted, with the name of
its tool, on one line: `web_fetch said: "..." "..." [m12]`. Inside the quotes it cannot be taken for structure or for a voice:
tags, headings, citations, chat templates' control words and the openings of our own texts are broken where they can be seen.
The words of people are never changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from compact.messages.excerpts import fitting_head

PERSON = "user"
"""The speaker of what people wrote."""
HOST = "host"
"""The speaker of what a program put into the conversation: reminders, text beside tool results."""
AGENT = ""
"""The speaker of the agent's own words, which stand without quotes."""
_TOOL = "tool"
_ROLES = ("user", "human", "assistant", "system", "developer", "host", "agent", "ai", "model", "bot", "admin")
_SPEAKER_CHARS = 40
_NAME = re.compile(r"[^\w.-]+")
_PASSES = 4
"""What one pass uncovers the next one breaks. A text that still changes after this many is made of such layers alone."""

_INVISIBLE = re.compile(
    "[\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e01ef]|(?<=[\x20-\x7e])[\u200c\u200d]++|(?<![\u200c\u200d])[\u200c\u200d]++(?=[\x20-\x7e])"
)
"""Characters that hide words, or show them in another order. Joiners stay between letters that they join."""
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# A run that opens nothing must not be tried again from each of its characters.
_OPENED = re.compile(
    r"(?<![<\uff1c\ufe64\u276e])[<\uff1c\ufe64\u276e]++(?=[ \t]{0,3}[/\uff0f!?]?[ \t]{0,3}([^\s<>\uff1c\uff1e]{1,60}))"
)
_TAG_PARTS = (
    "system", "assistant", "user", "human", "developer", "instruct", "compact", "summary", "ledger", "reminder",
    "conversation", "prompt", "message", "context", "admin", "policy", "start_of_turn", "end_of_turn",
)  # fmt: skip
_TAG_NAMES = frozenset(
    ("s", "sys", "im", "inst", "bos", "eos", "tool", "ai", "bot", "role", "turn", "rules", "important")
)
_BRACKET = re.compile(
    r"\[(?=[ \t]{0,2}/?[ \t]{0,2}(?:(?:inst|sys|system|user|assistant|human|developer|admin|tool_calls|tool_results|available_tools)\b"
    r"|compact\b|archived\b))",
    re.IGNORECASE,
)
_CITATION = re.compile(r"\[(?=(?:v\d{1,9} )?m\d{1,9}\])")
_MARKS = re.compile(r"^[ \t>*+-]*(?:#{1,6}(?:[ \t]+|$))+|(?<!\S)#{2,6}(?=\s|$)", re.MULTILINE)
_ROLE = re.compile(
    r"(?P<before>^[\W_]{0,6}|[.!?;|][ \t]{1,3})(?P<role>(?:the )?(?:user|human|assistant|system|developer|admin|ai|bot)"
    r"(?: (?:message|prompt|note|override|instructions?|update))?)(?P<after>[*_`]{0,3}[ \t]?[:\uff1a][*_`]{0,3})",
    re.IGNORECASE | re.MULTILINE,
)
_ROLE_LINE = re.compile(
    r"^(?P<before>[\W_]{0,6})(?P<role>user|human|assistant|system|developer)[*_`]{0,3}[ \t]{0,3}(?:[→»>|]{1,3}|[-–—]{1,2}>?(?=\s)|$)",
    re.IGNORECASE | re.MULTILINE,
)
"""A role before an arrow or a dash, or alone on its line."""
_ROLE_FIELD = re.compile(
    r"""(?P<quote>["'])role(?P=quote)\s{0,3}:\s{0,3}(?P<other>["'])(?P<role>user|human|assistant|system|developer)(?P=other)""",
    re.IGNORECASE,
)
_SAID = re.compile(
    r'(?P<speaker>[^":]{1,60}) said: "(?P<quotes>.*)"(?: (?P<cite>\[(?:v\d{1,9} )?m\d{1,9}\]))?', re.DOTALL
)
_BETWEEN = '" "'


def defuse(text: str) -> str:
    """Break what could be taken for structure or for somebody's voice. Doing it twice changes nothing more.

    Tags of ours and of chat templates lose their first bracket, headings their marks, `System:` its colon.
    """
    for _ in range(_PASSES):
        broken = _break(text, is_alien=True)
        if broken == text:
            return text
        text = broken
    return text.replace("<", "‹").replace("#", "").replace("[", "(")


def defuse_summary(text: str) -> str:
    """Break what a summary of another hand must not contain. Its headings are its own, except the one over the user's words."""
    for _ in range(_PASSES):
        broken = _break(text, is_alien=False)
        broken = "\n".join(
            _without_mark(line) if is_users_heading(line) else line for line in broken.split("\n")
        )
        if broken == text:
            break
        text = broken
    return text


def _break(text: str, *, is_alien: bool) -> str:
    """One pass. In an alien text there are no headings and no citations; a summary has its own."""
    text = _CONTROLS.sub("", text)
    text = _INVISIBLE.sub("", text) if not text.isascii() else text
    if "<" in text or not text.isascii():
        text = _OPENED.sub(_break_tag, text)
    if "[" in text:
        text = _BRACKET.sub("(", _CITATION.sub("(", text) if is_alien else text)
    if is_alien and "#" in text:
        text = _MARKS.sub("", text)
    if text.isascii() and not _may_name_role(text.lower()):
        return text
    text = _ROLE_FIELD.sub(r"(role \g<role>)", text)
    return _ROLE_LINE.sub(r"\g<before>(\g<role>)", _ROLE.sub(r"\g<before>(\g<role>)", text))


def _may_name_role(lowered: str) -> bool:
    """Whether one of the patterns for roles can match: most texts name none, and looking for words is fast."""
    return any(
        role in lowered for role in ("user", "human", "assistant", "system", "developer", "admin")
    ) or (":" in lowered and ("ai" in lowered or "bot" in lowered))


def _break_tag(opened: re.Match[str]) -> str:
    name = unicodedata.normalize("NFKC", opened.group(1)).casefold()
    if "|" in name[:2]:
        return "‹"
    words = re.split(r"[^a-z0-9]+", name.lstrip("/|"))
    is_ours = any(part in name for part in _TAG_PARTS) or words[0] in _TAG_NAMES
    return "‹" if is_ours else opened.group()


_HEADING_MARK = re.compile(r"^[\s>]*(?:#{1,6}\s*|\*\*|__)")
_USERS = re.compile(
    r"\b(?:user|human|customer|client)(?:'?s|’s)?\b.{0,40}\b(?:said|asked|words?|instruct\w*|want\w*|rules?|request\w*|orders?|demand\w*"
    r"|require\w*|message\w*|preferences?)\b|\b(?:instruct\w*|words?|rules?|requests?|orders?|messages?)\b.{0,24}\b(?:user|human)\b"
    r"|(?:benutzer|nutzer|utilisateur|usuario|usuário|utente|пользовател|用户|使用者|ユーザー|사용자|المستخدم)",
    re.IGNORECASE,
)


_USERS_TURN = re.compile(
    r"‹[^\s>]{0,40}[>\s]?\s?(?:user|human)\b[^\s>]{0,40}>?\s*$|‹/?(?:user|human)\b", re.IGNORECASE
)
"""A broken tag of a chat template, behind which the user would speak."""


def is_users_heading(line: str) -> bool:
    """Whether a line announces what the user said, however it is written."""
    bare = line.strip()
    looks = _HEADING_MARK.match(bare) is not None or (
        len(bare) < 80 and bare.rstrip("*_ ").endswith((":", "："))
    )
    return looks and _USERS.search(bare) is not None


def announces_user(line: str) -> bool:
    """Whether a line is a heading over the user's words, or was one before `defuse_summary`."""
    bare = line.strip()
    is_broken = bare.startswith("(") and bare.endswith(")") and _USERS.search(bare) is not None
    return is_broken or _USERS_TURN.search(bare) is not None or is_users_heading(line)


def _without_mark(line: str) -> str:
    return f"({line.strip().strip('#*_>: ：')})"


def speaker_of(tool_name: str | None) -> str:
    """The name under which a tool is quoted. A tool that is named like a person or a role is called a tool."""
    name = _NAME.sub("_", _INVISIBLE.sub("", tool_name or "")).strip("_")[:_SPEAKER_CHARS]
    if not name:
        return _TOOL
    plain = unicodedata.normalize("NFKC", name).casefold()
    first = re.split(r"[\W_]+", plain.removeprefix("the_"))[0]
    return f"{_TOOL} {name}" if first in _ROLES else name


def quote(text: str, speaker: str = _TOOL) -> str:
    """Quote a text on one line. Except for a person's words, what could end the quote or the line's voice is broken."""
    if speaker == PERSON:
        return f'"{text}"'
    inside = " ".join(defuse(text).split()).replace('"', "'").replace("“", "'").replace("”", "'")
    return f'"{inside}"'


def attribute(speaker: str, quotes: Sequence[str], cite: str) -> str:
    """Say who said what: `read_file said: "..." "..." [m12]`. `quotes` are results of `quote`."""
    return " ".join(filter(None, (f"{speaker} said:", *quotes, cite)))


def attributed(line: str) -> tuple[str, list[str], str] | None:
    """Read back what `attribute` wrote: the speaker, the quotes and the citation. None if the line is not of that form."""
    found = _SAID.fullmatch(line)
    if found is None:
        return None
    return found["speaker"], [f'"{said}"' for said in found["quotes"].split(_BETWEEN)], found["cite"] or ""


def closed(line: str) -> str:
    """The line with its last quote closed, if it was cut inside one."""
    return f'{line}"' if line.count('"') % 2 else line


def fitting_lines(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """The beginning of a summary that has at most `tokens` tokens, in whole lines. Of one long line, as much as fits."""
    if count(text) <= tokens:
        return text
    head = fitting_head(text, tokens, count)
    whole = head.rpartition("\n")[0].rstrip()
    if whole and not whole.splitlines()[-1].startswith("#"):
        return whole
    while head and count(closed(head)) > tokens:
        head = head[:-1]
    return closed(head)
