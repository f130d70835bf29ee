"""The running side: the manager, who waits for whom, and what serves the engine."""
