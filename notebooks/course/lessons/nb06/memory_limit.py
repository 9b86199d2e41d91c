"""Run something on GPUs that may hold only so many bytes, and say how it ended."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch


def with_limit(limit: float, take: Callable[..., Any], *args: Any) -> bool:
    """Call `take(*args)` while every GPU may give `limit` bytes to this process; print how it ended.

    Returns whether it came to its end. The limit is lifted afterwards. The peaks of `torch.cuda` start anew before it.
    Errors that are not about memory are raised.
    """
    _set_limit(limit)
    try:
        # A thread of its own: where backward fails halfway, the rest of it waits in a queue of its thread, with the
        # tensors that it needs. On real GPUs the queue belongs to the device and is emptied.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(take, *args).result()
    except torch.OutOfMemoryError as error:
        print(f"{type(error).__name__}: {str(error).split(' has a total')[0]}")  # the rest differs between machines
        return False
    finally:
        _set_limit(float("inf"))
    print("done")
    return True


def _set_limit(limit: float) -> None:
    for gpu in range(torch.cuda.device_count()):
        if limit != float("inf"):
            torch.cuda.reset_peak_memory_stats(gpu)
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / torch.cuda.mem_get_info(gpu)[1]), gpu)
