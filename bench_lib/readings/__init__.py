"""A run with its data, as everything that reads runs is given it."""
