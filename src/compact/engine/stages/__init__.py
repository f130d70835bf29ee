"""The rungs of the ladder, one file each: offload, shrink calls, summarize, truncate.

A stage is a generator: it takes rows, asks for what it needs from outside, and returns rows. It does no I/O of its own.
"""
