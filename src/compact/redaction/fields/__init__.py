"""Fields: names that say a secret follows, and whether what follows is one."""
