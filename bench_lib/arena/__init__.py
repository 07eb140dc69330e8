"""08_streamarena."""
