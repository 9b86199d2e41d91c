"""What only notebook 08, When ranks wait for each other, reads."""
