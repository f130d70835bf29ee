"""Exact token counts: per string, per message, per request.

`estimate` for one-off use; a `Meter` for a session, since it remembers what it counted.
"""

from __future__ import annotations

from compact.tokens.meter import Estimate, Meter, estimate
from compact.tokens.models import Profile, profile_of

__all__ = ["Estimate", "Meter", "Profile", "estimate", "profile_of"]
