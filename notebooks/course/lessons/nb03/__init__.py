"""What only notebook 03, A loss is a sum and a count, reads."""
