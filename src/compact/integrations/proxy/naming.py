"""Which session a request belongs to: the client's own id, else the head of its list, which never changes.

Agents inside one id (subagents) and conversations with equal heads are told apart by their lists, as in every integration
(`compact.runtime.resolver`), also after a restart and by another process on the same archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from compact.engine.state import digest
from compact.integrations.proxy.endpoints import Endpoint, Headers

CLIENT_HEADERS = (
    "x-compact-session",
    "x-claude-code-session-id",
    "x-opencode-session",
    "x-session-affinity",
    "thread-id",
    "session-id",
    "session_id",
    "x-session-id",
    "conversation-id",
    "conversation_id",
)
"""Headers with a client's own id, the first one first."""
_KEYS = ("authorization", "x-api-key", "x-goog-api-key")
_LONGEST_ID = 256
_NAME_CHARS = 20
_PROMPTS = ("system", "developer")


def client_id(headers: Headers) -> str | None:
    """The id that the client gives its session; None if it gives none."""
    found = (headers.get(name, "").strip() for name in CLIENT_HEADERS)
    return next((name for name in found if name and len(name) <= _LONGEST_ID), None)


def head_id(items: Sequence[Any], headers: Headers, endpoint: Endpoint) -> str:
    """A name from the first message that is no prompt, and from the key: people with equal questions stay apart.

    It tells nothing of either. A client that changes its key begins a new session.
    """
    head = next((item for item in items if not _is_prompt(item)), None)
    found = hashlib.sha256(endpoint.shape.dialect.encode())
    for part in (*(headers.get(name, "").encode() for name in _KEYS), digest(head) or b""):
        found.update(hashlib.sha256(part).digest())
    return f"head-{found.hexdigest()[:_NAME_CHARS]}"


def is_session(items: Sequence[Any], tools: Any, most_output: Any) -> bool:
    """Whether a request is part of a session. Quota probes and requests for a title are not.

    A probe asks for one token. A request for a title has no tools, and the model has not spoken in it.
    """
    if most_output == 1 or not all(isinstance(item, Mapping) for item in items):
        return False
    return bool(tools) or any(_is_reply(item) for item in items)


def _is_prompt(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("role") in _PROMPTS


def _is_reply(item: Mapping[str, Any]) -> bool:
    role = item.get("role")
    return role not in (*_PROMPTS, "user") and not (role is None and "parts" in item)
