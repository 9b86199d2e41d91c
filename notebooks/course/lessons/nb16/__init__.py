"""What only notebook 16, A Function with a memory, reads."""
