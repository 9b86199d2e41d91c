"""What only puzzles.ipynb reads: puzzles that have a target beside a right result."""
