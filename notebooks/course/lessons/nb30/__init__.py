"""What only notebook 30, checkpoints, reads."""
