"""Observe once, branch at each probe."""
