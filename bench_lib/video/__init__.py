"""Frames, sound and captions by time, on one causal clock."""
