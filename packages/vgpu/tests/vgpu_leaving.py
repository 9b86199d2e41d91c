"""What the ranks of test_vgpu_leaving.py do: importable by name in the child."""

import datetime
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import torch
import torch.distributed as dist
from torch import nn

WAITS = ("allreduce", "broadcast", "barrier", "send", "recv", "irecv")  # of the ranks 0, 2, 3, ...


def wait(kind: str, x: torch.Tensor, group: dist.ProcessGroup) -> None:
    """Wait in one collective for rank 1."""
    calls: dict[str, Callable] = {
        "allreduce": lambda: dist.all_reduce(x, group=group),
        "broadcast": lambda: dist.broadcast(x, 1, group=group),
        "barrier": lambda: dist.barrier(group=group),
        "send": lambda: dist.send(x, 1, group=group),
        "recv": lambda: dist.recv(x, 1, group=group),
        "irecv": lambda: dist.irecv(x, 1, group=group).wait(),
    }
    calls[kind]()


def leave(how: str) -> None:
    if how == "raised":
        raise ValueError("the loss is nan\nafter 7 steps")
    if how == "destroyed":
        dist.destroy_process_group()
        time.sleep(600)  # the process lives on until the test ends it
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "ended":
        raise SystemExit(3)


def say(wire: Connection, call: Callable[[], None]) -> None:
    """Tell the test what a call raises, and how many seconds it took; then raise it."""
    begin = time.monotonic()
    try:
        call()
        wire.send(("nothing", "", 0.0))
    except Exception as error:
        wire.send((type(error).__name__, str(error), time.monotonic() - begin))
        raise


def in_pairs(rank: int, wire: Connection, how: str) -> None:
    """Every rank has a group with rank 1, who leaves; each waits in a collective of its own."""
    dist.init_process_group("nccl")
    partners = [other for other in range(dist.get_world_size()) if other != 1]
    groups = {other: dist.new_group([other, 1]) for other in partners}
    x = torch.ones(3, device="cuda")
    for other in partners:
        if rank in (1, other):
            dist.all_reduce(x, group=groups[other])
    if rank == 1:
        groups.clear()  # a group that somebody still holds keeps its connections after it has been destroyed
        leave(how)
    else:
        say(wire, lambda: wait(WAITS[partners.index(rank)], x, groups[rank]))


def in_backward(rank: int, wire: Connection, how: str) -> None:
    """Rank 1 leaves before its backward; the others wait in theirs."""
    dist.init_process_group("nccl")
    net = nn.parallel.DistributedDataParallel(nn.Linear(3, 1).cuda())
    loss = net(torch.ones(2, 3, device="cuda")).sum()
    if rank == 1:
        leave(how)
    else:
        say(wire, loss.backward)


def until_the_timeout(rank: int, wire: Connection, how: str) -> None:
    """A short time-out, and the wish to see the hang."""
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=4))
    if rank == 1:
        leave(how)
    else:
        say(wire, lambda: dist.all_reduce(torch.ones(1, device="cuda")))


def both_receive(rank: int, wire: Connection, how: str) -> None:
    """Each rank waits for what the other would send afterwards; or, asleep, rank 1 comes too late."""
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=4))
    x = torch.ones(3, device="cuda")
    dist.all_reduce(x)
    if rank == 1 and how == "asleep":
        time.sleep(600)  # the test ends it
    say(wire, lambda: dist.recv(x, 1 - rank))


def five_for_three(rank: int, wire: Connection, how: str) -> None:
    """Rank 1 expects fewer numbers than rank 0 sends."""
    dist.init_process_group("nccl")
    if rank == 1:
        dist.recv(torch.ones(3, device="cuda"), 0)
    else:
        say(wire, lambda: dist.send(torch.ones(5, device="cuda"), 1))


def over_gloo(rank: int, wire: Connection, how: str) -> None:
    """Gloo raises on real GPUs, too."""
    dist.init_process_group("cpu:gloo,cuda:nccl")
    dist.all_reduce(torch.ones(1, device="cuda"))
    if rank == 1:
        leave(how)
    else:
        say(wire, lambda: dist.all_reduce(torch.ones(1)))


def makes_a_group(rank: int, wire: Connection, how: str) -> None:
    say(wire, lambda: dist.init_process_group("nccl"))


def live(rank: int, ranks: int, port: int, environment: dict, work: Callable, how: str, wire: Connection) -> None:
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(ranks)}
    os.environ.update(meeting | environment)
    torch.set_num_threads(1)
    torch.cuda.set_device(rank)
    work(rank, wire, how)
