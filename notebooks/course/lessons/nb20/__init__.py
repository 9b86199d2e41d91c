"""What only notebook 20, Train it, reads."""
