"""What only notebook 07, DDP by hand, then torch's, reads."""
