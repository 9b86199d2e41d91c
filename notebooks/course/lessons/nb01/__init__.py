"""What only notebook 01, Scatter: the rows that vanished, reads."""
