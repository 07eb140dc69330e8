"""A process that decodes, and its caller."""
