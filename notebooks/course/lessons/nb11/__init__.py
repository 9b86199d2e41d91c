"""What only notebook 11, A mesh of devices, and which plan, reads."""
