"""Fields: names that announce a secret, and whether the value that follows is one."""
