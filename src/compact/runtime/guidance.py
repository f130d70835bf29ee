"""What the agent's model is told about its managed context."""

from __future__ import annotations

_SEGMENT = """\
## Your context is managed

To keep this conversation within the model's limit, older material is moved out of it, never deleted:
- A large tool output is stored under `/tool_outputs/`; a preview and its path stay here.
- Contents that you wrote to files, and old tool results, become short pointers that begin with `[compact: `.
  Do not copy a pointer into a file or a tool call: it stands for text that is stored elsewhere.
- When the conversation gets very long, its beginning is replaced by a `<COMPACT-SUMMARY>`; the whole of it is stored
  under `/conversation_history/`.

To get something back: `{p}read_file(path)` shows a stored file, `{p}ls("/tool_outputs/")` and `{p}ls("/conversation_history/")`
list what there is, `{p}grep(pattern, "/conversation_history/")` finds text, and `{p}search(query)` finds short passages by
the words near what you need: names, numbers, things. Secrets are masked as `<REDACTED>` in what is stored: never write such a mask back.
"""


def prompt_segment(tool_prefix: str = "") -> str:
    """Return text for the agent's system prompt that names the recall tools as they are offered."""
    return _SEGMENT.replace("{p}", tool_prefix)
