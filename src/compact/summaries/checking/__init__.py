"""Check, without a model, whether a summary may replace the history that it covers."""
