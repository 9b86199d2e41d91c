"""What data parallelism does to a batch: how it is split, what comes back, how losses add up."""

from frcnn_lite.parallel.chunks import chunk_sizes, rows_lost, share
from frcnn_lite.parallel.four_calls import data_parallel, gather, parallel_apply, replicate, scatter
from frcnn_lite.parallel.placement_trace import HeldTensor, PlacementTrace, trace_placement
from frcnn_lite.parallel.reduce_loss import reduce_loss
from frcnn_lite.parallel.row_trace import ReplicaCall, RowTrace, trace_rows

__all__ = [
    "HeldTensor",
    "PlacementTrace",
    "ReplicaCall",
    "RowTrace",
    "chunk_sizes",
    "data_parallel",
    "gather",
    "parallel_apply",
    "reduce_loss",
    "replicate",
    "rows_lost",
    "scatter",
    "share",
    "trace_placement",
    "trace_rows",
]
