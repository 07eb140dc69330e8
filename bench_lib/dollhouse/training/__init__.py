"""How the tiny model is built and trained on the household."""
