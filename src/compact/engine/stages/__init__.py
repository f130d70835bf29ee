"""The rungs of the ladder, one file each: offload, shrink calls, summarize, truncate.

A stage is a generator function. It takes a `Context`, asks for what it needs from outside, and returns a `Context`.
"""
