"""What only notebook 04, Whose GPU is it?, reads."""
