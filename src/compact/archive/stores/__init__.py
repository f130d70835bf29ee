"""Where the archive's bytes lie: files, memory, an object store, or a host's own backend."""
