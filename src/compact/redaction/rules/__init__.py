"""Rules: what a rule says, the built-in rules, and how a rule becomes a detector."""
