"""What only notebook 09, Several machines, reads."""
