"""What every other file needs: the list of replaced attributes, PyTorch's words for errors, what a run records."""
