"""The recorded sessions at their cuts, written once for all tools: `python -m bench.peers.cases FILE`.

Every session is cleaned first, so that each tool starts from a legal list. Content that not every package can hold is left
out: images, and anything besides text and calls.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.peers._chat import plain
from bench.retention import SHARES, cases_of, sessions
from compact.checks import violations
from compact.hygiene import clean


def write(path: Path) -> int:
    """How many cases there are; the file has one a line."""
    written = 0
    partial = path.with_suffix(".part")
    with partial.open("w", encoding="utf-8") as out:
        for number, session in enumerate(sessions()):
            told = {**session, "messages": plain(clean(session["messages"]))}
            for share in SHARES:
                for case in cases_of(told, share):
                    if violations(case.before, "chat", in_flight=False):
                        continue
                    hard = {one.name for one in case.needed}
                    needed = [[one.name, one.lines, one.name in hard] for one in case.needed_or_recent]
                    line = {
                        "session": case.session,
                        "share": share,
                        "half": number % 2,
                        "budget": case.budget,
                        "before": case.before,
                        "needed": needed,
                    }
                    out.write(json.dumps(line) + "\n")
                    written += 1
    partial.rename(path)
    return written


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
