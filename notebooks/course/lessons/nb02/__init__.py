"""What only notebook 02, DataParallel in four calls, reads."""
