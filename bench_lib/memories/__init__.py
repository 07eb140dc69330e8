"""Bases of memory systems: the contract, and the mechanism that methods share."""
