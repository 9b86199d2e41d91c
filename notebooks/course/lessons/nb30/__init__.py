"""What only notebook 30, Checkpoints and foreign weights, reads."""
