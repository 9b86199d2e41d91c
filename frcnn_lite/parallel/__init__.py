"""Data parallelism: how a batch is split, what comes back, how losses add up, and how a hang ends."""

from frcnn_lite.parallel.chunks import chunk_sizes, rows_lost, share
from frcnn_lite.parallel.collectives import (
    any_rank,
    from_main_rank,
    merge_rows,
    reduce_loss_over_ranks,
    rows_of_rank,
    sum_over_ranks,
)
from frcnn_lite.parallel.four_calls import data_parallel, gather, parallel_apply, replicate, scatter
from frcnn_lite.parallel.launch import RankFailed, run_ranks
from frcnn_lite.parallel.pinning import LeftBehind, check_devices, from_numpy, same_device
from frcnn_lite.parallel.process_group import choose_device, is_main_rank, process_group, rank_and_size
from frcnn_lite.parallel.reduce_loss import reduce_loss
from frcnn_lite.parallel.watchdog import CollectiveHang, Watchdog, diagnose

__all__ = [
    "CollectiveHang",
    "LeftBehind",
    "RankFailed",
    "Watchdog",
    "any_rank",
    "check_devices",
    "choose_device",
    "chunk_sizes",
    "data_parallel",
    "diagnose",
    "from_main_rank",
    "from_numpy",
    "gather",
    "is_main_rank",
    "merge_rows",
    "parallel_apply",
    "process_group",
    "rank_and_size",
    "reduce_loss",
    "reduce_loss_over_ranks",
    "replicate",
    "rows_lost",
    "rows_of_rank",
    "run_ranks",
    "same_device",
    "scatter",
    "share",
    "sum_over_ranks",
]
