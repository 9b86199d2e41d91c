"""A Faster R-CNN small enough to read, and the notebooks that teach multi-GPU PyTorch on it."""

__version__ = "0.1.0"
