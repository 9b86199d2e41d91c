"""Ways out of this package and into it: ONNX, SyncBatchNorm taken back, weights by name."""

from frcnn_lite.export.sync_batchnorm import revert_sync_batchnorm
from frcnn_lite.export.weights import load_weights_into

__all__ = ["load_weights_into", "revert_sync_batchnorm"]
