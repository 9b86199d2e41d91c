"""What only notebook 06, Memory balance, reads."""
