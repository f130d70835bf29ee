"""Where the archive's bytes lie: on a disk, in memory, in an object store, or in a host's own backend."""
