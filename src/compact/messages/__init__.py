"""Messages: the neutral form, the dialects it is read from, and the rules of a legal list."""

from __future__ import annotations

from compact.messages.message import (
    CallId,
    Image,
    Message,
    Opaque,
    Part,
    Pdf,
    Piece,
    Reasoning,
    Refusal,
    Role,
    Sealed,
    Text,
    ToolCall,
    ToolResult,
    to_json,
)

__all__ = [
    "CallId",
    "Image",
    "Message",
    "Opaque",
    "Part",
    "Pdf",
    "Piece",
    "Reasoning",
    "Refusal",
    "Role",
    "Sealed",
    "Text",
    "ToolCall",
    "ToolResult",
    "to_json",
]
