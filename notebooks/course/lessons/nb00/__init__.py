"""What only notebook 00, Start here, reads."""
