"""When a pass pays: `worth_it(P=..., H=..., I=..., S=..., C=..., r=..., w=..., cold=...)`."""

from __future__ import annotations

from compact.runtime.economy import Worth, worth_it

__all__ = ["Worth", "worth_it"]
