"""What only notebook 25, Einsum instead of many FC layers, reads."""
