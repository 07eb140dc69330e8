"""Text files that people wrote or exported: how they are encoded, and the records in them."""
