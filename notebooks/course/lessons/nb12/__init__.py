"""What only notebook 12, A detector in one page, reads."""
