"""From names to objects: methods, models, sources."""
