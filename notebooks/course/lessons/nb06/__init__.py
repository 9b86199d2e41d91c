"""What only notebook 06, memory on one GPU and on each rank, reads."""
