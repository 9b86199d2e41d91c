"""What only notebook 20, Train it on ranks, reads."""
