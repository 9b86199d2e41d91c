"""What data parallelism does to a batch: how it is split, what comes back, how losses add up."""

from frcnn_lite.parallel.reduce_loss import reduce_loss

__all__ = ["reduce_loss"]
