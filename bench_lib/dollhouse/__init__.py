"""A small rendered household with known answers: test bed, calibration set, embedded default."""
