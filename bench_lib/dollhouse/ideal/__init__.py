"""The ideal observer: it perceives exactly what it is shown, and answers by rules."""
