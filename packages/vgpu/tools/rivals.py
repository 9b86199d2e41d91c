"""Fifteen things that a machine with two GPUs does, asked of virtual GPUs and of other tools for testing without.

    python tools/rivals.py vgpu | FakeTensorMode | LocalTensorMode | fake-group | FakeGPU

Each check is a piece of an ordinary program for GPUs. It passes where it does what it does on such a machine: the right
values, the right device, or the error that a program there would meet. docs/rivals.md has the table.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator

TOOL = os.environ.get("RIVAL") or (sys.argv[1] if len(sys.argv) > 1 else "vgpu")
os.environ["RIVAL"] = TOOL  # spawned ranks use it, too
if TOOL == "FakeGPU":  # asks to come before torch
    import fakegpu

    fakegpu.init(runtime="fakecuda", profile="a100", device_count=2)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

IN_ONE_PROCESS = ("fake-group", "LocalTensorMode")  # these play all ranks, or one of them, in a single process


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """What the tool does to a process."""
    if TOOL == "vgpu":
        import vgpu

        with vgpu.virtual_gpus(2, force=True):
            yield
    elif TOOL == "FakeTensorMode":
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            yield
    elif TOOL == "LocalTensorMode":
        from torch.distributed._local_tensor import LocalTensorMode

        with LocalTensorMode(2):
            yield
    else:
        yield


def raises(kind: type[BaseException], function: Callable) -> None:
    """Fail unless the call raises this error."""
    try:
        function()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def two_gpus_do_not_add() -> None:
    x, y = torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")
    raises(RuntimeError, lambda: x + y)
    assert (y + 1).device == torch.device("cuda:1")


def gpu_and_cpu_do_not_add() -> None:
    x = torch.ones(3, device="cuda")
    raises(RuntimeError, lambda: x + torch.ones(3))
    assert (torch.ones(3, device="cuda") + torch.tensor(1.0)).is_cuda, "a number may lie anywhere"


def a_module_on_the_gpu_wants_its_input_there() -> None:
    net = nn.Conv2d(1, 1, 3).cuda()
    raises(RuntimeError, lambda: net(torch.ones(1, 1, 5, 5)))


def numpy_refuses_a_gpu_tensor() -> None:
    raises(TypeError, lambda: torch.ones(3, device="cuda").numpy())


def values_are_real() -> None:
    x = torch.arange(4.0).cuda()
    assert (x @ x).item() == 14 and x.cpu().tolist() == [0, 1, 2, 3]


def gradients_go_back_over_devices() -> None:
    weight = nn.Parameter(torch.ones(2, device="cuda:0"))
    (weight * 3).to("cuda:1").sum().backward()
    assert weight.grad.device == torch.device("cuda:0") and weight.grad.tolist() == [3, 3]


def data_parallel_splits_a_batch() -> None:
    seen = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append((str(x.device), len(x), threading.current_thread().name))
            return self.fc(x)

    net = nn.DataParallel(Net().cuda(), [0, 1])
    x = torch.randn(10, 3)
    out = net(x.cuda())
    assert sorted(s[:2] for s in seen) == [("cuda:0", 5), ("cuda:1", 5)] and len({s[2] for s in seen}) == 2
    torch.testing.assert_close(out.cpu(), net.module.cpu().fc(x))


def a_new_thread_is_on_device_0() -> None:
    found = []
    torch.cuda.set_device(1)
    thread = threading.Thread(target=lambda: found.append(torch.cuda.current_device()))
    thread.start()
    thread.join()
    assert (found, torch.cuda.current_device()) == ([0], 1)
    torch.cuda.set_device(0)


def autocast_halves() -> None:
    with torch.autocast("cuda", torch.float16):
        assert nn.Linear(3, 3).cuda()(torch.ones(1, 3, device="cuda")).dtype is torch.float16


def memory_runs_out() -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    raises(torch.OutOfMemoryError, lambda: torch.empty(total + 1, dtype=torch.uint8, device="cuda"))


def memory_is_counted_and_given_back() -> None:
    before = torch.cuda.memory_allocated(1)
    x = torch.zeros(1 << 20, device="cuda:1")
    assert torch.cuda.memory_allocated(1) - before == 4 << 20 == x.numel() * 4
    del x
    assert torch.cuda.memory_allocated(1) == before


def files_keep_the_device() -> None:
    file = io.BytesIO()
    torch.save({"w": torch.ones(2, device="cuda:1")}, file)
    file.seek(0)
    assert torch.load(file)["w"].device == torch.device("cuda:1")
    file.seek(0)
    assert torch.load(file, map_location="cuda:0")["w"].tolist() == [1, 1]


def an_lstm_trains() -> None:
    net = nn.LSTM(3, 4, batch_first=True).cuda(1)
    out, _ = net(torch.ones(2, 5, 3, device="cuda:1"))
    out.sum().backward()
    assert out.device == torch.device("cuda:1") and net.weight_ih_l0.grad.abs().sum().item() > 0


def ddp_averages_gradients() -> None:
    on_ranks(_ddp)


def _ddp(rank: int) -> None:
    place = home(rank)
    net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False).to(place))
    net(torch.full((1, 1), rank + 1.0, device=place)).sum().backward()
    assert net.module.weight.grad.item() == 1.5 and net.module.weight.device == place


def fsdp2_is_one_process() -> None:
    on_ranks(_fsdp2)


def _fsdp2(rank: int) -> None:
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    alone, net = nn.Linear(4, 4).to(home(rank)), nn.Linear(4, 4).to(home(rank))
    net.load_state_dict(alone.state_dict())
    fully_shard(net, mesh=dist.init_device_mesh(home(rank).type, (2,)))
    x = torch.arange(8.0, device=home(rank)).view(2, 4)
    for model, rows in ((alone, x), (net, x[rank : rank + 1])):
        model(rows).square().mean().backward()
    torch.testing.assert_close(net.weight.grad.full_tensor(), alone.weight.grad)


def home(rank: int) -> torch.device:
    """Where a rank works. What plays the ranks in one process knows no GPUs, so it may do so on the CPU."""
    return torch.device("cpu") if TOOL in IN_ONE_PROCESS else torch.device("cuda", rank)


CHECKS = (
    two_gpus_do_not_add,
    gpu_and_cpu_do_not_add,
    a_module_on_the_gpu_wants_its_input_there,
    numpy_refuses_a_gpu_tensor,
    values_are_real,
    gradients_go_back_over_devices,
    data_parallel_splits_a_batch,
    a_new_thread_is_on_device_0,
    autocast_halves,
    memory_runs_out,
    memory_is_counted_and_given_back,
    files_keep_the_device,
    an_lstm_trains,
    ddp_averages_gradients,
    fsdp2_is_one_process,
)


def on_ranks(check: Callable[[int], None]) -> None:
    """Run a check on two ranks over NCCL; where a tool plays the ranks itself, in this process over its own group."""
    if TOOL in IN_ONE_PROCESS:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
        try:
            check(0)
        finally:
            dist.destroy_process_group()
        return
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_rank, (f"file://{folder}/store", check.__name__), nprocs=2)


def _rank(rank: int, store: str, check: str) -> None:
    with machine():
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", init_method=store, rank=rank, world_size=2)
        globals()[check](rank)
        dist.barrier()
        dist.destroy_process_group()


def main() -> int:
    """Run all checks and print a line for each; the exit status is the number of those that failed."""
    warnings.simplefilter("ignore")
    failed = 0
    for check in CHECKS:
        try:
            with machine():
                check()
            verdict = "passes"
        except Exception as error:
            failed += 1
            verdict = f"fails: {type(error).__name__}: {' '.join(str(error).split())[:140]}"
        print(f"{check.__name__.replace('_', ' '):44} {verdict}", flush=True)
    print(f"{TOOL}: {len(CHECKS) - failed} of {len(CHECKS)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
