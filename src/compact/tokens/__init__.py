"""Token counts: per string, per message, per request.

Use `estimate` for a single count, and a `Meter` for a session, because it remembers what it counted.
"""

from __future__ import annotations

from compact.tokens.meter import Estimate, Meter, estimate
from compact.tokens.models import Profile, profile_of

__all__ = ["Estimate", "Meter", "Profile", "estimate", "profile_of"]
