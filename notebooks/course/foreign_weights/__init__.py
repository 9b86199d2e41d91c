"""Weights that another framework or a different program wrote: foreign files and pickles, and Paddle's names."""
