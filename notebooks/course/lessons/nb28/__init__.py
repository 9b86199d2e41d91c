"""What only notebook 28, Determinism: the same run twice, reads."""
