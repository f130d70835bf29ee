"""What recorded sessions cost, and what each policy would have cost. One simulator of a provider's prompt cache."""

from __future__ import annotations

from compact.tools.pricing.billing import Bill, Sent, bill
from compact.tools.pricing.comparing import Priced, as_data, dearer, price, total
from compact.tools.pricing.policies import POLICIES, PricePolicy, play
from compact.tools.pricing.timelines import Request, Timeline, read_timelines

__all__ = [
    "POLICIES",
    "Bill",
    "PricePolicy",
    "Priced",
    "Request",
    "Sent",
    "Timeline",
    "as_data",
    "bill",
    "dearer",
    "play",
    "price",
    "read_timelines",
    "total",
]
