"""Who writes summaries. A summarizer is a callable: a request and a way to count in, text out."""
