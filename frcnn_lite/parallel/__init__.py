"""What data parallelism does to a batch: how it is split, what comes back, how losses add up."""

from frcnn_lite.parallel.chunks import chunk_sizes, rows_lost, share
from frcnn_lite.parallel.four_calls import data_parallel, gather, parallel_apply, replicate, scatter
from frcnn_lite.parallel.launch import RankFailed, run_ranks
from frcnn_lite.parallel.placement_trace import HeldTensor, PlacementTrace, trace_placement
from frcnn_lite.parallel.process_group import (
    choose_device,
    init_from_env,
    is_launched,
    is_main_rank,
    process_group,
    rank_and_size,
)
from frcnn_lite.parallel.reduce_loss import reduce_loss
from frcnn_lite.parallel.row_trace import ReplicaCall, RowTrace, trace_rows

__all__ = [
    "HeldTensor",
    "PlacementTrace",
    "RankFailed",
    "ReplicaCall",
    "RowTrace",
    "choose_device",
    "chunk_sizes",
    "data_parallel",
    "gather",
    "init_from_env",
    "is_launched",
    "is_main_rank",
    "parallel_apply",
    "process_group",
    "rank_and_size",
    "reduce_loss",
    "replicate",
    "rows_lost",
    "run_ranks",
    "scatter",
    "share",
    "trace_placement",
    "trace_rows",
]
