"""Calls that lost their thought signature, in a turn whose other calls have theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compact.messages.dialects import Dialect
from compact.messages.message import Message, ToolCall
from compact.messages.pairs import unsigned_calls

NO_SIGNATURE = "skip_thought_signature_validator"
"""What Google's documentation tells hosts to send in place of a signature that they do not have."""


def sign_calls(messages: list[Message], dialect: Dialect) -> list[Message]:
    """Return the messages with `NO_SIGNATURE` on every call that needs a signature and has none (Gemini)."""
    found = list(messages)
    for place in unsigned_calls(messages, dialect):
        message = found[place.message]
        parts = list(message.parts)
        call = parts[place.part]
        assert isinstance(call, ToolCall)
        before: Mapping[str, Any] = call.origin if isinstance(call.origin, Mapping) else {}
        key = "thought_signature" if "function_call" in before else "thoughtSignature"
        parts[place.part] = replace(call, signed=True, origin={**before, key: NO_SIGNATURE})
        found[place.message] = message.with_parts(tuple(parts))
    return found
