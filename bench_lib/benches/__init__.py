"""One room a benchmark: its rows, scores, cases for a judge, and sections of a page."""
