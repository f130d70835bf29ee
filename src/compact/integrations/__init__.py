"""One file per host framework. Each imports its framework, and says which extra is missing if it cannot."""
