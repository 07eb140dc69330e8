"""Algorithms of memories as pure functions on tensors, one file each."""
