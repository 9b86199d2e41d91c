"""The puzzles of this lesson, a file each."""
