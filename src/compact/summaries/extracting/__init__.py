"""Finds facts in a session without a model: by structure first, by cue words of several languages second."""
