"""StreamArena."""
