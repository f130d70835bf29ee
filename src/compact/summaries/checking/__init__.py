"""Checks by code whether a summary may replace the history it stands for."""
