"""Tensors on virtual GPUs: how they are made, moved, saved and subclassed."""
