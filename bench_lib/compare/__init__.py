"""09_compare."""
