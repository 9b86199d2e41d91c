"""What only notebook 17, RoI pooling: kernels, reads."""
