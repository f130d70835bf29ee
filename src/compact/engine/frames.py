"""The text of the message that stands for folded history, and how it is read again. Pure.

    <COMPACT-SUMMARY v3>                        <COMPACT-LEDGER v3>
    the ledger                                  the ledger

    the summary                                 [Archived: read_file("..."), ...]
                                                </COMPACT-LEDGER>
    [Archived: read_file("..."), ...]
    </COMPACT-SUMMARY>

A ledger frame stands where nobody wrote a summary. Both say where the archive keeps what they replace. One frame of a context
carries the ledger of the user's words, as its first section; an empty line ends it.
"""

from __future__ import annotations

import re

from compact.messages.message import LEDGER_OPENS, SUMMARY_OPENS
from compact.summaries import ledger
from compact.summaries.ledger import Entry
from compact.summaries.request import cite_step

_SUMMARY = (SUMMARY_OPENS, "</COMPACT-SUMMARY>")
_LEDGER = (LEDGER_OPENS, "</COMPACT-LEDGER>")
_ARCHIVED = "[Archived:"
_EARLIER = "## What the user asked, in their words, newest first"
"""The heading in frames of earlier versions, over a list of the user's messages."""
_OPENED = r"<(?P<kind>COMPACT-(?:SUMMARY|LEDGER)) v(?P<step>\d{1,9})>\n"
_FRAME = re.compile(
    rf"^{_OPENED}(?P<body>.*?)^{re.escape(_ARCHIVED)} [^\n]*\]\n</(?P=kind)>$", re.DOTALL | re.MULTILINE
)


def frame(step: int, said: str, summary: str, where: str) -> str:
    """The text for the context: a summary with the ledger `said` in front of it, or a ledger frame if there is no summary."""
    reading = f'{_ARCHIVED} read_file("{where}"), grep("...", "/conversation_history/"), search("...")]'
    opens, closes = _SUMMARY if summary else _LEDGER
    pieces = [piece for piece in (said, summary, reading) if piece]
    return f"{opens}{step}>\n" + "\n\n".join(pieces) + f"\n{closes}"


def is_frame(text: str) -> bool:
    """Whether a text has the form of one whole frame. Anybody can write such a text; see `SessionState.summaries`."""
    found = _FRAME.match(text)
    return found is not None and found.end() == len(text)


def step_of(text: str) -> int:
    """The step of the first summary in a text; of a ledger if there is no summary, and 0 without either."""
    steps = {found["kind"]: int(found["step"]) for found in reversed(list(_FRAME.finditer(text)))}
    return steps.get("COMPACT-SUMMARY") or next(iter(steps.values()), 0)


def without_ledger(text: str) -> str:
    """A frame without its ledger. Any other text, and a frame that carries none, is returned as it is."""
    opening, newline, rest = text.partition("\n")
    return f"{opening}{newline}{_without_ledger(rest)}" if is_frame(text) else text


def with_ledger(text: str, said: str) -> str:
    """A frame with this ledger as its first section, and no other."""
    opening, _, rest = text.partition("\n")
    return "\n".join((opening, f"{said}\n\n{_without_ledger(rest)}"))


def entries_in(text: str) -> list[Entry]:
    """The entries of the ledgers that frames carry, for a state that does not have them.

    Frames of earlier versions list whole messages of the user. These are read anew, and nobody knows where they were said.
    """
    found: list[Entry] = []
    for each in _FRAME.finditer(text):
        if each["body"].startswith(f"{_EARLIER}\n"):
            said = [ledger.Heard("", "user", text) for text in _bullets(each["body"])]
            found += ledger.extend((), said[::-1])  # they were listed newest first
        elif each["body"].startswith(f"{ledger.HEADING}\n"):
            found += ledger.read(each["body"])
    return found


def _bullets(body: str) -> list[str]:
    found: list[str] = []
    for line in body.splitlines()[1:]:
        if line.startswith("- "):
            found.append(line[2:])
        elif line.startswith("  ") and found:
            found[-1] += f"\n{line[2:]}"
        else:
            break
    return found


def summary_in(text: str) -> str:
    """What summarizers wrote into frames: no markers, no ledger. A text without a frame is returned as it is.

    Citations name their step, except those of the first summary, whose step is `step_of(text)`.
    """
    own = step_of(text)
    bodies = [(int(found["step"]), _without_ledger(found["body"]).strip()) for found in _FRAME.finditer(text)]
    if not bodies:
        return text.strip()
    return "\n\n".join(body if step == own else cite_step(body, step) for step, body in bodies if body)


def _without_ledger(body: str) -> str:
    # Only directly after the opening marker, because anywhere else the heading may be quoted text.
    if body.startswith((f"{ledger.HEADING}\n", f"{_EARLIER}\n")):
        return body.partition("\n\n")[2]
    return body
