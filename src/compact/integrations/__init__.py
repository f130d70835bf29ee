"""One module per host framework. Each imports its framework, and names the missing extra if it cannot."""
