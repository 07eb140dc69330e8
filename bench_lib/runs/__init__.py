"""A run's folder and its records."""
