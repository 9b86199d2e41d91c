"""What only notebook 18, Pinning a detector to its GPUs, reads."""
