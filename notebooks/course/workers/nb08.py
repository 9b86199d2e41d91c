"""What the ranks of notebook 08 do: scenes of a few lines of a training loop, in which they wait for ever.

`run_ranks(play, 2, ["uneven_batches", ...])` plays them in one pair of processes, each in a process group of its own
and under a watchdog, and returns what each rank had to say. A rank that is through lives on until the other is.
"""

import os
import re
import signal
from collections.abc import Callable, Iterable
from datetime import timedelta
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed, nn
from torch.distributed import PrefixStore, TCPStore
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

from course.workers.sharding import compare_with_ddp, detector_loss
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.parallel import any_rank
from frcnn_lite.parallel.process_group import process_group
from frcnn_lite.parallel.watchdog import CollectiveHang, Position, Watchdog

LIMIT = 1.0  # seconds in which a scene that hangs is ended; it computes for milliseconds
PATIENCE = 60.0  # and one that does not hang
HANG = {"uneven_batches", "logging_on_rank_zero", "break_on_nan", "different_collectives", "unused_parameters"}
# Seconds that the group itself allows: short where both ranks are left hanging, or where its own message is wanted.
TIMEOUTS = {"different_collectives": 2.0, "time_out": 1.0}
# What gloo's messages say of the machine: the place in its source, address and port of a peer, and times.
PLACE, TIME = re.compile(r"\[/\S+\]\s*|\s*\[[\d.:a-f]+\](:\d+)?"), re.compile(r"\d+ ?ms\b")


class Outcome(NamedTuple):
    """What became of a scene on one rank: its result, or the error in words; positions if the watchdog ended it."""

    result: Any = None
    error: str = ""
    positions: tuple[Position, ...] = ()


def play(names: Iterable[str]) -> dict[str, Outcome]:
    """The worker: play the scenes of these names, one after the other."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    import_module("torch._dynamo")  # DDP does, in its constructor; that takes seconds, not the same for each rank
    outcomes = {}
    for name in names:
        patience = timedelta(seconds=TIMEOUTS.get(name, PATIENCE))
        meeting = PrefixStore(name, store)
        distributed.init_process_group("gloo", store=meeting, rank=rank, world_size=world_size, timeout=patience)
        outcomes[name] = _perform(SCENES[name], rank, LIMIT if name in HANG else PATIENCE)
        store.set(f"{name} {rank}", "over")
        store.wait([f"{name} {other}" for other in range(world_size)])
        distributed.destroy_process_group()
    return outcomes


def _perform(scene: Callable[[int, Watchdog], Any], rank: int, limit: float) -> Outcome:
    torch.manual_seed(0)
    try:
        with Watchdog(limit) as dog:
            return Outcome(scene(rank, dog))
    except CollectiveHang as hang:
        return Outcome(error=str(hang), positions=hang.positions)
    except (RuntimeError, FloatingPointError) as error:
        return Outcome(error=f"{type(error).__name__}: {TIME.sub('... ms', PLACE.sub('', str(error)))}")


def uneven_batches(rank: int, dog: Watchdog) -> None:
    """Rank 0 has five batches and rank 1 has three."""
    net = DistributedDataParallel(nn.Linear(4, 2))
    dog.watch(net)
    for dog.step in range(1, 1 + [5, 3][rank]):
        net(torch.ones(2, 4)).sum().backward()


def joined_batches(rank: int, dog: Watchdog) -> list[float]:
    """The same batches under `Join`. Returns the gradient of one weight in each step of this rank."""
    net = DistributedDataParallel(nn.Linear(4, 2))
    gradients = []
    with Join([net]):
        for dog.step in range(1, 1 + [5, 3][rank]):
            net.zero_grad()
            net(torch.ones(2, 4)).sum().backward()
            gradients.append(net.module.weight.grad[0, 0].item())  # noqa: FL009 on CPUs
    return gradients


def logging_on_rank_zero(rank: int, dog: Watchdog) -> float:
    """Rank 0 sums its loss over the ranks for its log; the others do not. Returns the sum of 10 and 20."""
    loss, correct = torch.tensor(0.5), torch.tensor([10.0, 20.0][rank])
    if rank == 0:
        distributed.all_reduce(loss)
    distributed.all_reduce(correct)
    return correct.item()


def break_on_nan(rank: int, dog: Watchdog) -> None:
    """Rank 1 meets a loss that is not a number in step 3, and stops."""
    net = DistributedDataParallel(nn.Linear(4, 2))
    dog.watch(net)
    for dog.step in range(1, 6):
        loss = net(_batch(rank, dog.step)).sum()
        if not loss.isfinite():
            break
        loss.backward()


def agreed_stop(rank: int, dog: Watchdog) -> int | None:
    """The same data; a rank stops when any rank wants to. Returns the step in which this one stops."""
    net = DistributedDataParallel(nn.Linear(4, 2))
    for dog.step in range(1, 6):
        loss = net(_batch(rank, dog.step)).sum()
        if any_rank(not loss.isfinite()):
            break
        loss.backward()
    return dog.step


def different_collectives(rank: int, dog: Watchdog) -> None:
    """Both ranks call a collective, not the same one."""
    weights = torch.ones(4)
    if rank == 0:
        distributed.all_reduce(weights)
    else:
        distributed.broadcast(weights, src=0)


class Heads(nn.Module):
    """A score for every row, and boxes for the first `objects` of them; with `always`, also for none."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.box = nn.Linear(4, 2), nn.Linear(4, 4)

    def forward(self, x: Tensor, objects: int, always: bool = False) -> Tensor:
        loss = self.score(x).sum()
        return loss + self.box(x[:objects]).sum() if objects or always else loss


def unused_parameters(rank: int, dog: Watchdog) -> None:
    """In step 2 rank 1 has a picture without objects, and leaves the box head out."""
    distributed.set_debug_level(distributed.DebugLevel.INFO)  # the message then has names, not only indices
    net = DistributedDataParallel(Heads())
    distributed.set_debug_level(distributed.DebugLevel.OFF)
    dog.watch(net)
    for dog.step in range(1, 4):
        net(torch.ones(2, 4), _objects(rank, dog.step)).backward()


def found_unused(rank: int, dog: Watchdog) -> float:
    """The same with `find_unused_parameters=True`. Returns the gradient of one weight of the box head."""
    net = DistributedDataParallel(Heads(), find_unused_parameters=True)
    for dog.step in range(1, 4):
        net.zero_grad()
        net(torch.ones(2, 4), _objects(rank, dog.step)).backward()
        if dog.step == 2:
            return net.module.box.weight.grad[0, 0].item()
    raise AssertionError("there is a step 2")


def always_used(rank: int, dog: Watchdog) -> float:
    """The same with a sum over no rows in place of no sum. Returns the gradient of one weight of the box head."""
    net = DistributedDataParallel(Heads())
    for dog.step in range(1, 3):
        net.zero_grad()
        net(torch.ones(2, 4), _objects(rank, dog.step), always=True).backward()
    return net.module.box.weight.grad[0, 0].item()


def empty_picture(rank: int, dog: Watchdog) -> int:
    """Faster R-CNN lite, two steps; rank 1 never has an object. Returns how many parameters have a gradient."""
    net = DistributedDataParallel(FasterRCNN(FasterRCNNConfig()))
    for dog.step in (1, 2):
        detector_loss(net, rank, objects=1 - rank).backward()
    return sum(parameter.grad is not None for parameter in net.parameters())


def time_out(rank: int, dog: Watchdog) -> None:
    """A collective that rank 1 never enters, and no watchdog that would be sooner than the group's own time-out."""
    if rank == 0:
        distributed.all_reduce(torch.ones(3))


def monitored_barrier(rank: int, dog: Watchdog) -> None:
    """A barrier that rank 1 never enters, of the kind that names it."""
    if rank == 0:
        distributed.monitored_barrier(timeout=timedelta(seconds=LIMIT / 2))


def sharded(rank: int, dog: Watchdog) -> dict[str, float]:
    """See `course.workers.sharding`."""
    return compare_with_ddp(rank)


def killed(step: int = 3) -> None:
    """A worker of its own: rank 1 is killed in this step, as by a system that is out of memory; rank 0 goes on."""
    with process_group("cpu"):
        for now in range(1, 6):
            if now == step and distributed.get_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            distributed.all_reduce(torch.ones(3))


def wrapped() -> None:
    """A worker of its own: a model is wrapped in DDP, and that is all."""
    with process_group("cpu"):
        DistributedDataParallel(nn.Linear(4, 2))


def _batch(rank: int, step: int | None) -> Tensor:
    """Ones; on rank 1 in step 3, not a number."""
    return torch.full((2, 4), float("nan") if (rank, step) == (1, 3) else 1.0)


def _objects(rank: int, step: int | None) -> int:
    return 0 if (rank, step) == (1, 2) else 2


SCENES: dict[str, Callable[[int, Watchdog], Any]] = {
    scene.__name__: scene
    for scene in (
        *(uneven_batches, joined_batches, logging_on_rank_zero, break_on_nan, agreed_stop, different_collectives),
        *(unused_parameters, found_unused, always_used, empty_picture, time_out, monitored_barrier, sharded),
    )
}
