"""Reading back what left the context: the agent's tools, grep and ranked search."""
