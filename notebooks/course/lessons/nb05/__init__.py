"""What only notebook 05, A loop of one's own, reads."""
