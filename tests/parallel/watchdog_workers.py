"""Workers of test_watchdog_on_ranks.py: spawned processes import them."""

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from frcnn_lite.parallel.process_group import process_group
from frcnn_lite.parallel.watchdog import Watchdog


def batch(rank):
    return torch.randn(5, 4, generator=torch.Generator().manual_seed(rank), dtype=torch.float64)


def gradients_watched_and_not(store):
    """Gradients of a DDP model: never watched, while watched, and by the hook that stays after the block."""
    torch.manual_seed(0)
    found = []
    with process_group("cpu"):
        rank = distributed.get_rank()
        for watched in (False, True):
            net = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).double())
            net.load_state_dict({name: torch.full_like(value, 0.3) for name, value in net.state_dict().items()})
            with Watchdog(30) as dog:
                if watched:
                    dog.watch(net)
                net(batch(rank)).square().sum().backward()
                names = [entry.name for entry in dog.entered]
            found.append([parameter.grad.clone() for parameter in net.parameters()])
        net.zero_grad()
        net(batch(rank)).square().sum().backward()
        found.append([parameter.grad.clone() for parameter in net.parameters()])
        gathered = [None, None]
        with Watchdog(30) as dog:
            distributed.all_gather_object(gathered, rank)
            work = distributed.all_reduce(torch.ones(1), async_op=True)
            work.wait()
            counts = dog.entered[-1].number
    return found, names, gathered, counts


def unwatched_backward():
    """A hang in native code that nothing wakes."""
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    net = DistributedDataParallel(nn.Linear(4, 2))
    with Watchdog(0.5) as dog:
        for dog.step in range(1, 5 - rank):
            net(torch.ones(2, 4)).sum().backward()
    while True:  # the peer lives on
        pass


def subgroup_hang():
    """Three ranks; 0 and 2 form a group, and 2 does not come to its second collective."""
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    pair = distributed.new_group([0, 2])
    with Watchdog(0.5):
        distributed.all_reduce(torch.ones(1))
        for _ in range({0: 2, 1: 0, 2: 1}[rank]):
            distributed.all_reduce(torch.ones(1), group=pair)
    while True:
        pass
