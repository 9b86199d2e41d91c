"""What the ranks of the tests do: spawned processes can import this file, since its folder is on pytest's path."""

import os
import signal
import time

import torch
from torch import distributed

from frcnn_lite.parallel import process_group, rank_and_size


def meet(fail_on=None, how=None):
    """Add up the ranks; then one of them fails, if any, while the others wait for it."""
    with process_group() as device:
        rank, size = rank_and_size()
        number = torch.tensor([rank + 1.0], device=device)
        distributed.all_reduce(number)
        print(f"one of {size}\nhere")
        if rank == fail_on:
            fail(how)
        if fail_on is not None:
            distributed.all_reduce(number)
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS")
        return {
            "pid": os.getpid(),
            "device": str(device),
            "sum": number,
            "backend": distributed.get_backend(),
            "threads": torch.get_num_threads(),
            "environment": [os.environ[name] for name in names],
        }


def fail(how):
    if how == "raise":
        raise LookupError("no such picture\nsecond line")
    if how == "exit":
        os._exit(3)  # after sys.exit the group would be torn down with its peer waiting, and at times that aborts
    if how == "kill":
        print("about to be killed")
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_ever()


def wait_for_ever():
    while True:
        time.sleep(0.05)


def announce_and_hang(folder):
    """Leave a file named after the process, then wait to be ended."""
    (folder / str(os.getpid())).touch()
    wait_for_ever()


def return_a_lambda():
    return lambda: None
