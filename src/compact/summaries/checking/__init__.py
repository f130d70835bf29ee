"""Whether a summary may stand for what it replaces, checked by code."""
