"""What only notebook 16, RoI pooling: a Function with a memory, reads."""
