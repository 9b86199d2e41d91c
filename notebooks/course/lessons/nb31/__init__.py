"""What only notebook 31, weights from elsewhere, reads."""
