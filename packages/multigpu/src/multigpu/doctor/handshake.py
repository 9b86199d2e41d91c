"""Two processes shake hands over gloo: `python -m multigpu.doctor.handshake` prints the sum that each rank got.

This has a file of its own, because spawned workers import their module, and the doctor must start without torch.
"""

import multiprocessing
import sys
import tempfile
from datetime import timedelta
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import torch
import torch.distributed as dist

WORLD_SIZE = 2
PATIENCE = timedelta(seconds=40)


def worker(rank: int, store: str, results: "SimpleQueue[tuple[int, float]]") -> None:
    """Join the group, add this rank's number to the others', and hand the sum to the parent."""
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=WORLD_SIZE, timeout=PATIENCE)
    number = torch.tensor([rank + 1.0])
    dist.all_reduce(number)
    results.put((rank, number.item()))
    dist.destroy_process_group()


def handshake() -> list[float]:
    """The sum over ranks of (rank + 1), as each rank sees it.

    Raises:
        RuntimeError: a worker ended with an error or did not end in time; its own message is on stderr.
    """
    # Importing torch takes a process seconds. On Linux this process, which has not used threads, can be copied instead;
    # macOS has libraries that may not be used in a copy, and Windows cannot copy a process.
    linux = sys.platform == "linux"
    context = multiprocessing.get_context("fork") if linux else multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # A file needs no port and no host name that resolves, the two usual obstacles on Windows and macOS.
        store = (Path(folder) / "store").as_uri()
        workers = [
            context.Process(target=worker, args=(rank, store, results), daemon=True) for rank in range(WORLD_SIZE)
        ]
        for process in workers:
            process.start()
        for process in workers:
            process.join(PATIENCE.total_seconds())
        codes = [process.exitcode for process in workers]
        for process in workers:
            process.kill()
    if codes != [0] * WORLD_SIZE:
        late = f"None: still running after {PATIENCE.total_seconds():.0f} s"
        raise RuntimeError(f"the workers ended with exit codes {codes} ({late})")
    return [value for _, value in sorted(results.get() for _ in workers)]


if __name__ == "__main__":
    print(*handshake())
