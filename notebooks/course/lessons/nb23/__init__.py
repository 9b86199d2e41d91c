"""What only notebook 23, Convolution by hand, reads."""
