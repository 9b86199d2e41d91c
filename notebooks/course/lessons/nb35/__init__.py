"""What only notebook 35 reads: the GPU runs later."""
