"""What only notebook 21, Judge it, reads."""
