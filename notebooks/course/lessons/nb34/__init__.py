"""What only notebook 34 reads: ten bugs."""
