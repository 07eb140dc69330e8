"""From a candidate to what is asked of a method, and when."""
