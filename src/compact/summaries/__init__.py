"""Writing and checking summaries. A summarizer is a callable that takes a `SummaryRequest` and returns its text."""
