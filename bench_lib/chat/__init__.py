"""Models that take messages: one contract, several backends."""
