"""What only notebook 24, Grouped convolution, reads."""
