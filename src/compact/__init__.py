"""compact: long LLM-agent sessions that stay inside the context window."""
