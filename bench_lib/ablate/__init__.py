"""06_ablations."""
