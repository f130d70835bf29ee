"""Events on their way out: spans, the journal, exporters and their workers."""
