"""Signatures of thinking: a stand-in signs what it thought and recognises it when it comes back."""

from __future__ import annotations

import base64
import hashlib
import hmac


def sign(text: str, key: bytes) -> str:
    """The signature of a thinking block."""
    digest = hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def is_signed(text: str, signature: object, key: bytes) -> bool:
    """Whether this signature belongs to this text."""
    return isinstance(signature, str) and hmac.compare_digest(signature.encode(), sign(text, key).encode())


def seal(text: str, key: bytes) -> str:
    """Text that only the stand-in can read back: for encrypted reasoning and redacted thinking."""
    hidden = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
    return f"{hidden}.{sign(text, key)}"


def is_sealed(sealed: object, key: bytes) -> bool:
    """Whether this is unchanged output of `seal`."""
    if not isinstance(sealed, str):
        return False
    hidden, _, signature = sealed.partition(".")
    try:
        text = base64.b64decode(hidden, validate=True).decode("utf-8", "surrogatepass")
    except ValueError:
        return False
    return is_signed(text, signature, key)
