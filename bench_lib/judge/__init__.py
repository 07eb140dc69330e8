"""04_judge."""
