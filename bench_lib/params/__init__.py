"""Parameters of the notebooks, one record each."""
