"""Rules: what they say, the shipped ones, and how matches are found and judged."""
