"""What the ranks of test_vgpu_nccl.py do: importable by name in the child."""

import importlib.util
import os
import re
import warnings
from unittest import mock

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.distributed.distributed_c10d import _coalescing_manager

import vgpu

# Until torch 2.13 a reduction is boxed for good before anybody can see which one it is.
SEES_REDUCTIONS = hasattr(dist.ReduceOp, "unbox")
NCCL_2_30 = not torch.__version__.startswith(("2.11", "2.12", "2.13"))  # brought by torch, with words of its own


def here(*values: float) -> torch.Tensor:
    return torch.tensor(values, device="cuda", dtype=torch.float32)


def labels(rank: int) -> None:
    """The group says what it would say on GPUs, and so do those made from it."""
    group = dist.group.WORLD
    assert dist.get_backend() == "nccl" and str(dist.get_backend_config()) == "cuda:nccl"
    assert group._device_types == [torch.device("cuda")] and group.bound_device_id == torch.device("cuda", rank)
    for made in (dist.new_group([0, 1]), dist.new_group(backend="nccl"), dist.new_group(backend="cpu:gloo,cuda:nccl")):
        x = here(rank + 1.0)
        dist.all_reduce(x, group=made)
        assert x.tolist() == [3] and x.device == torch.device("cuda", rank) and "nccl" in dist.get_backend(made)
    with_cpu = dist.new_group(backend="cpu:gloo,cuda:nccl")
    x = torch.ones(1)
    dist.all_reduce(x, group=with_cpu)
    assert x.tolist() == [2]
    ddp = nn.parallel.DistributedDataParallel(nn.Linear(2, 2).cuda(), device_ids=[rank])
    ddp(here(1, 1)).sum().backward()
    assert ddp._get_ddp_logging_data()["backend_name"] == "nccl"


def refusals(rank: int) -> None:
    """What NCCL refuses, in its words, and the group works on afterwards."""
    square = torch.ones(4, 4, device="cuda")
    sparse = square.to_sparse()
    for words, kind, call in (
        ("No backend type associated with device type cpu", RuntimeError, lambda: dist.all_reduce(torch.ones(1))),
        ("Tensors must be contiguous", ValueError, lambda: dist.all_reduce(square.t()[:, ::2])),
        ("Tensors must be contiguous", ValueError, lambda: dist.broadcast(square[:, 0], 0)),
        ("Tensors for P2P must be non-overlapping and dense", ValueError, lambda: dist.send(square[:, 0], 1 - rank)),
        ("NCCL does not support all_reduce with sparse tensors.", RuntimeError, lambda: dist.all_reduce(sparse)),
        ("Tensors must be CUDA and dense", ValueError, lambda: dist.broadcast(sparse, 0)),
        ("monitored_barrier", ValueError, dist.monitored_barrier),
        ("not supported for NCCL process group: Short", TypeError, lambda: dist.all_reduce(square.short())),
        ("Cannot use ReduceOp.BAND with NCCL", ValueError, lambda: dist.all_reduce(square.int(), dist.ReduceOp.BAND)),
        ("ReduceOp.AVG with boolean", TypeError, lambda: dist.all_reduce(square.bool(), dist.ReduceOp.AVG)),
    ):
        if "ReduceOp" in words and not SEES_REDUCTIONS:
            continue
        with pytest.raises(kind, match=re.escape(words)):
            call()
    pictures = torch.ones(1, 2, 2, 2, device="cuda").contiguous(memory_format=torch.channels_last)
    dist.all_reduce(pictures)
    dist.all_reduce(square.half())
    assert pictures.eq(2).all()
    if SEES_REDUCTIONS:
        truth = torch.tensor([rank == 0, True], device="cuda")
        dist.all_reduce(truth)
        assert truth.tolist() == [True, True]


HERE = "HERE"  # a line of this file


def disagreements(rank: int) -> None:
    """Where NCCL hangs or adds up garbage, every rank raises by name, and the group works on afterwards."""
    ones = torch.ones(4, device="cuda")
    for words, call in (
        ("rank 0: allreduce of float32, 3 elements", lambda: dist.all_reduce(ones[: 3 + rank])),
        ("allreduce of float64", lambda: dist.all_reduce(ones.double() if rank else ones)),
        ("reduction MAX", lambda: dist.all_reduce(ones, dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)),
        (
            f"rank 0: allreduce of float32, 4 elements{', reduction SUM' * SEES_REDUCTIONS}, at {HERE}\n"
            f"rank 1: broadcast of float32, 4 elements, root 0, at {HERE}",
            lambda: dist.broadcast(ones, 0) if rank else dist.all_reduce(ones),
        ),
        (
            f"rank 0: barrier, at {HERE}\nrank 1: broadcast of float32, 4 elements, root 0, at {HERE}",
            lambda: dist.broadcast(ones, 0) if rank else dist.barrier(),
        ),
        ("root 1", lambda: dist.broadcast(ones, rank)),
        (
            "gives [1, 3] and takes [2, 2]",
            lambda: dist.all_to_all_single(torch.empty_like(ones), ones, [2, 2], [1, 3] if rank == 0 else [3, 1]),
        ),
        ("all_reduce of float32, 2 elements", lambda: functional.all_reduce(ones[: 2 + rank], "sum", dist.group.WORLD)),
    ):
        if words == "reduction MAX" and not SEES_REDUCTIONS:
            continue
        pattern = re.escape(words).replace(HERE, r"vgpu_nccl\.py:\d+ in [^\n]+")
        with pytest.raises(RuntimeError, match=pattern) as raised:
            call()
        assert str(raised.value).startswith("simulated only: the ranks of this group do not call the same collective")
    dist.all_reduce(ones)
    assert ones.tolist() == [2] * 4


def devices(rank: int) -> None:
    """A rank that has forgotten set_device meets another one on its GPU; one that forgets it later, nobody."""
    dist.init_process_group("nccl")
    x, words = torch.ones(1, device="cuda:0"), "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000"
    if NCCL_2_30:
        words = "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this con"
    with pytest.raises(dist.DistBackendError, match=f"(?s)ncclInvalidUsage.*{words}"):
        dist.all_reduce(x)
    if NCCL_2_30:
        with mock.patch.dict(os.environ, {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}):
            dist.all_reduce(x, group=dist.new_group())
        assert x.tolist() == [2]
    dist.all_reduce(here(1.0))
    elsewhere = torch.ones(1, device="cuda:2") if rank else here(1.0)
    with pytest.raises(RuntimeError, match="simulated only: rank 1 communicates on a device that it has not used"):
        dist.all_reduce(elsewhere)
    dist.all_reduce(torch.ones(1, device=f"cuda:{2 + rank}"))  # all ranks move: one more communicator


def bound(rank: int) -> None:
    """Who has told init_process_group a device communicates on that one alone."""
    for call in (dist.all_reduce, lambda x: dist.send(x, 1 - rank), functional_all_reduce):
        with pytest.raises(dist.DistBackendError, match="not on device passed to init_process_group"):
            call(torch.ones(1, device=f"cuda:{2 + rank}"))
    torch.cuda.set_device(3 - rank)
    dist.barrier()
    x = torch.ones(1, device=f"cuda:{rank}")
    dist.all_reduce(x)
    assert x.tolist() == [2]


def functional_all_reduce(x: torch.Tensor) -> torch.Tensor:
    return functional.all_reduce(x, "sum", dist.group.WORLD)


def visible(rank: int) -> None:
    """Programs that show each rank one GPU call it `cuda:0` everywhere."""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(rank + 1)
    vgpu.disable()
    vgpu.enable(4, force=True)
    dist.init_process_group("nccl")
    x = torch.ones(1, device="cuda:0")
    dist.all_reduce(x)
    assert torch.cuda.device_count() == 1 and x.tolist() == [2]


def what_nccl_has(rank: int) -> None:
    """Reductions, groups of calls, futures and tensors of several sizes, which gloo does not have."""
    x = here(rank + 1.0)
    if SEES_REDUCTIONS and hasattr(dist, "_make_nccl_premul_sum"):  # not in builds without CUDA
        dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
        assert x.tolist() == [1.5]
        given, out = torch.ones(2, device="cuda"), here(0.0)
        dist.reduce_scatter_tensor(out, given, dist._make_nccl_premul_sum(3.0))
        assert out.tolist() == [6] and given.tolist() == [1, 1]
    a, b = here(rank), here(2.0 * rank)
    with _coalescing_manager(device=x.device, async_ops=True) as manager:
        dist.all_reduce(a)
        dist.all_reduce(b)
    manager.wait()
    assert (a.tolist(), b.tolist()) == ([1], [2])
    wide, wider = torch.zeros(2, device="cuda"), torch.zeros(4, device="cuda")
    with _coalescing_manager(device=x.device):
        dist.all_gather_into_tensor(wide, here(rank))
        dist.all_gather_into_tensor(wider, here(rank, -rank))
    assert (wide.tolist(), wider.tolist()) == ([0, 1], [0, 0, 1, -1])
    work = dist.all_reduce(x.fill_(rank), async_op=True)
    value = work.get_future().then(lambda future: future.value()[0] * 2).wait()
    assert value.device == x.device and value.tolist() == [2]
    parts = [torch.zeros(k + 1, device="cuda") for k in range(2)]
    dist.all_gather(parts, torch.full((rank + 1,), rank + 5.0, device="cuda"))
    assert [p.tolist() for p in parts] == [[5], [6, 6]]
    if importlib.util.find_spec("numpy"):  # PowerSGD draws with it
        powersgd(rank)


def means_of_integers(rank: int) -> None:
    """NCCL adds integers up and divides then, towards zero; gloo refuses to average them.

    FuncSumPostDiv in https://github.com/NVIDIA/nccl/blob/master/src/device/reduce_kernel.h divides.
    """
    if not SEES_REDUCTIONS:
        return
    for dtype in (torch.int64, torch.int32, torch.uint8):
        x = here(rank, 2 * rank, 3 + rank).to(dtype)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        assert x.tolist() == [0, 1, 3] and x.dtype is dtype
    x = here(-3 * rank, 5 + rank).int()  # adds up to -3 and 11
    work = dist.all_reduce(x, dist.ReduceOp.AVG, async_op=True)
    work.wait()
    assert x.tolist() == [-1, 5]
    part = here(0).int()
    dist.reduce_scatter_tensor(part, here(rank, 7).int(), dist.ReduceOp.AVG)
    assert part.tolist() == ([7] if rank else [0])
    x = here(4 * rank).int()
    dist.reduce(x, 1, dist.ReduceOp.AVG)
    assert rank == 0 or x.tolist() == [2]


def several_sizes(rank: int) -> None:
    """Experts take as many rows as their tokens are, and a rank may have none for another one."""
    rows = [[1, 3], [2, 4]]  # from rank, to rank
    for background in (False, True):
        given = [torch.full((n, 2), 10.0 * rank + k, device="cuda") for k, n in enumerate(rows[rank])]
        taken = [torch.empty(rows[k][rank], 2, device="cuda") for k in range(2)]
        work = dist.all_to_all(taken, given, async_op=background)
        if background:
            work.wait()
        assert [one[0].tolist() for one in taken] == [[rank] * 2, [10 + rank] * 2]
    for shape in ((), (3,)):
        gives, takes = ([1, 6], [1, 0]) if rank == 0 else ([0, 0], [6, 0])
        out, of = torch.empty(sum(takes), *shape, device="cuda"), torch.ones(sum(gives), *shape, device="cuda")
        dist.all_to_all_single(out, of, takes, gives)
        assert out.eq(1).all()


def float8(rank: int) -> None:
    """NCCL sends it, and adds it up."""

    def small(*values: float) -> torch.Tensor:
        return here(*values).to(torch.float8_e4m3fn)

    x = small(rank + 1, 2)
    dist.all_reduce(x)
    assert x.float().tolist() == [3, 4] and x.dtype is torch.float8_e4m3fn
    dist.all_reduce(x, dist.ReduceOp.MAX)
    dist.broadcast(y := small(rank + 5), 1)
    dist.all_gather(parts := [small(0, 0) for _ in range(2)], small(rank, 2))
    dist.all_gather_into_tensor(whole := small(0, 0), small(rank + 1))
    dist.reduce_scatter_tensor(part := small(0).to(torch.float8_e5m2), small(1, 2).to(torch.float8_e5m2))
    dist.all_to_all_single(crossed := small(0, 0), small(rank, rank))
    assert [one.float().tolist() for one in (x, y, whole, part, crossed)] == [
        [3, 4],
        [6],
        [1, 2],
        [2 + 2 * rank],
        [0, 1],
    ]
    assert [one.float().tolist() for one in parts] == [[0, 2], [1, 2]]
    dist.reduce(x := small(rank + 1), 1)
    assert rank == 0 or x.float().tolist() == [3]
    gathered = functional.all_gather_tensor(small(rank + 1), 0, dist.group.WORLD)
    added = functional.all_reduce(small(rank + 1), "sum", dist.group.WORLD)
    assert gathered.dtype is added.dtype is torch.float8_e4m3fn and gathered.device == here(0).device
    assert (gathered.float().tolist(), added.float().tolist()) == ([1, 2], [3])


def powersgd(rank: int) -> None:
    """A hook that takes the futures of its collectives: the ranks agree on their gradients."""
    net = nn.parallel.DistributedDataParallel(nn.Linear(20, 20).cuda(), device_ids=[rank])
    net.register_comm_hook(powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
    for _ in range(4):
        net(torch.full((1, 20), rank + 1.0, device="cuda")).sum().backward()
    grads = torch.stack([p.grad.norm() for p in net.parameters()])
    both = [torch.zeros_like(grads) for _ in range(2)]
    dist.all_gather(both, grads)
    assert both[0].equal(both[1]) and both[0].isfinite().all() and both[0].gt(0).all()


def through_autograd(rank: int) -> None:
    """What PyTorch says of a backward through a collective that has none, and what it computes: as on gloo."""
    group = dist.new_group(backend="cpu:gloo,cuda:nccl")
    told = {}
    for device in ("cpu", "cuda"):
        weight = torch.ones(3, device=device, requires_grad=True)
        y = weight * (rank + 1)
        dist.all_reduce(y, group=group)
        for turn in range(2):  # in turn, because the warnings that a `with` records are those of all threads
            dist.barrier()
            if turn == rank:
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    (y * y).sum().backward()
        dist.barrier()
        told[device] = weight.grad.tolist(), [str(w.message) for w in said]
    assert told["cuda"] == told["cpu"]
    version = tuple(int(n) for n in torch.__version__.split(".")[:2])
    if version >= (2, 15):
        assert ["c10d::allreduce_: an autograd kernel was not" in text for text in told["cuda"][1]] == [True]


def everything(rank: int) -> None:
    through_autograd(rank)
    labels(rank)
    refusals(rank)
    disagreements(rank)
    what_nccl_has(rank)
    means_of_integers(rank)
    several_sizes(rank)
    float8(rank)
