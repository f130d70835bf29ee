"""`compact demo`: a real session, looked at."""

from __future__ import annotations

from importlib.resources import as_file, files

from compact.checks import violations
from compact.cli.measure import Measurer
from compact.cli.report import measured_json, print_measured
from compact.cli.shared import JsonOption, console, counted, print_json
from compact.config import CompactConfig
from compact.transcripts import read_sessions

EXAMPLE = "Example: compact demo"

ORIGIN = "A real coding session of a person and an agent, from github.com/entireio/cli (MIT)."


def command(as_json: JsonOption = False) -> None:
    """Count and check the real coding session that comes with compact."""
    with as_file(files("compact.cli") / "demo_session.jsonl.gz") as path:
        (session,) = read_sessions(path)
    measured = Measurer(CompactConfig.load()).measure(session)
    found = violations(session.messages)
    if as_json:
        print_json({"origin": ORIGIN, "legal": not found, **measured_json(measured)})
        return
    out = console()
    out.print(ORIGIN + "\n")
    print_measured(out, measured)
    verdict = (
        f"refuse it, for {counted(len(found), 'reason')}"
        if found
        else "take it: every call has its result, in order"
    )
    out.print(f"\nA provider would {verdict}.")
