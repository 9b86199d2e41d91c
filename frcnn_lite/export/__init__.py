"""Ways out of this package and into it: ONNX, modules rewritten for other runtimes, foreign weights."""

from frcnn_lite.export.adaptive_pool import rewrite_adaptive_pools
from frcnn_lite.export.paddle_weights import load_paddle_into
from frcnn_lite.export.safe_pickle import load_arrays
from frcnn_lite.export.sync_batchnorm import revert_sync_batchnorm
from frcnn_lite.export.weight_files import read_weights, write_weights
from frcnn_lite.export.weights import load_weights_into

__all__ = [
    "load_arrays",
    "load_paddle_into",
    "load_weights_into",
    "read_weights",
    "revert_sync_batchnorm",
    "rewrite_adaptive_pools",
    "write_weights",
]
