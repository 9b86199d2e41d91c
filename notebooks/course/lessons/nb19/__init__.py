"""What only notebook 19, The cold case, reads."""
