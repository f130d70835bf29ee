"""The engine: one straight line from a host's list to a list that fits. It does no I/O."""
