"""What only notebook 26, Eighty small layers at once, reads."""
