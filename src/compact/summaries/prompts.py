"""What a model is told to write, strategy by strategy, each with an example. Rules and headings come from the templates."""

from __future__ import annotations

TASK_STATE = """\
Record the state of the task: the next concrete step; goals with their success criteria; constraints; decisions with their
reasons; what was done to which file and which command ended how; what is open or blocked; files, branches, identifiers and
environments with the words that give them meaning.

Example of a record:
m3 user: Uploads over 10 MB fail on staging since release 4.2. Fix it on branch fix/upload, and do not touch the public API.
m4 assistant: I'll look at the handler. [calls read_file path=server/upload.py]
m5 tool: MAX_BODY = 10_000_000  # bytes ...
m6 assistant: MAX_BODY is the limit. I'll make it a setting instead of raising it, because staging and production differ.
m7 assistant: [calls edit_file path=server/upload.py]
m9 tool: pytest tests/test_upload.py: 1 failed, 11 passed. test_large_body: KeyError: 'UPLOAD_MAX'
Example of its summary:
## Next step
- Give UPLOAD_MAX a default in server/upload.py, then run pytest tests/test_upload.py again [m9]
## Goals: intent and success criteria
- Uploads over 10 MB must work on staging again (they fail since release 4.2); branch fix/upload [m3]
## Constraints
- The public API must not change [m3]
## Decisions: made, not open
- Decided: the limit becomes the setting UPLOAD_MAX instead of a higher constant, because staging and production differ [m6]
## Progress: files changed and commands run
- server/upload.py: MAX_BODY replaced by the setting UPLOAD_MAX [m7]
- pytest tests/test_upload.py -> 1 failed, 11 passed [m9]
## Current state
- The change is written, one test fails [m9]
## Outstanding: problems and blockers
- test_large_body: KeyError: 'UPLOAD_MAX' [m9]
## Entities: important details, identifiers, files
- server/upload.py: MAX_BODY = 10_000_000 # bytes [m5]"""

DECISION_LOG = """\
Write a ledger of the decisions, one line each, in the order of time, in exactly this form, with - for a part that the record
does not give:
- [m12] decision :: rationale :: inputs (brief) :: outputs (brief)

Example of a record:
m2 assistant: The pool may be exhausted, so I check its metrics first. [calls query metric=db_pool_in_use]
m3 tool: db_pool_in_use 20 of 20 since 09:14
m4 assistant: It is. I restart worker-3 because it holds 18 of the 20. [calls restart host=worker-3]
m5 tool: restarted, db_pool_in_use 2 of 20
Example of its summary:
## Next step
- Find out why worker-3 held 18 connections [m4]
## Decisions: decision :: rationale :: inputs :: outputs
- [m2] check the pool's metrics :: the pool may be exhausted :: query db_pool_in_use :: 20 of 20 since 09:14
- [m4] restart worker-3 :: it holds 18 of the 20 :: restart host=worker-3 :: restarted, db_pool_in_use 2 of 20
## Entities: important details, identifiers, files
- worker-3, db_pool_in_use, 09:14 [m3]"""

CODE_DELTA = """\
Record what changed in the code, one line for each file: `file_path: what changed (functions and interfaces touched, side
effects)` and why; then the lines that matter, as in a diff; then what has to follow.

Example of a record:
m4 assistant: Callers pass None, so parse() must return an empty list. [calls edit_file path=src/parse.py]
m5 tool: ok
m6 assistant: [calls bash command=pytest -q]
m7 tool: FAILED tests/test_cli.py::test_empty - AssertionError
Example of its summary:
## Next step
- Make tests/test_cli.py::test_empty pass [m7]
## Changes: file by file, and why
- src/parse.py: parse() returns [] for None (why: callers pass None) [m4]
## Diff
- src/parse.py: + if text is None: return [] [m4]
## Follow-up: failing commands and open problems
- tests/test_cli.py::test_empty fails with AssertionError [m7]
## Commands
- pytest -q -> FAILED tests/test_cli.py::test_empty [m7]"""

BRIEF = """\
Say in few lines what was wanted, what was done, what was decided and what comes next. At most four lines under a heading.

Example of a record:
m2 user: Book a table for four on Friday, not before 19:00.
m3 assistant: Luigi's has 19:30. I take it, since the other one closes at 21:00. [calls book place=Luigi's time=19:30]
m4 tool: booked, reference LX-5521
Example of its summary:
## Next step
- Tell the user the reference LX-5521 [m4]
## Now
- The table is booked [m4]
## Decided
- Decided: Luigi's at 19:30, since the other one closes at 21:00 [m3]
## Done
- book place=Luigi's, time=19:30 -> booked, reference LX-5521 [m4]
## Facts
- Four people, Friday, not before 19:00 [m2]"""
