"""What the workers of test_vgpu_rpc.py do: importable by name in the child."""

import contextlib
import os
import re
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed.autograd as dist_autograd
from torch import Tensor, nn
from torch.distributed import rpc
from torch.distributed.nn import RemoteModule
from torch.distributed.optim import DistributedOptimizer
from torch.futures import Future

HERE, THERE, ELSEWHERE = torch.device("cuda:0"), torch.device("cuda:1"), torch.device("cuda:2")
REFUSED = re.escape("TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU")
NO_REQUEST = "Request device mapping is not available for destination "
NO_ANSWER = "Response device mapping is not available for destination worker0, but found tensor on device: cuda:1"
NOT_PREPARED = r"tensors residing on device\(s\) cuda:2 which are not among the expected device\(s\) cuda:1"


def start(rank: int, maps: dict, world_size: int | None = 2, where: str = "env://") -> None:
    """Join as `worker{rank}`; worker0 has device maps."""
    options = rpc.TensorPipeRpcBackendOptions(device_maps=maps if rank == 0 else None, init_method=where)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size, rpc_backend_options=options)


def add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def device_of(x: Tensor) -> torch.device:
    return x.device


def itself(x: object) -> object:
    return x


def ones_on(device: str) -> Tensor:
    return torch.ones(2, device=device)


def made_there() -> Tensor:
    return torch.ones(2, device="cuda:1")


def sum_there(x: Tensor) -> float:
    return x.cuda().sum().item()


def references() -> list:
    """References to a tensor and to a list, made by their owner."""
    return [rpc.RRef(torch.full((3,), 5.0, device=THERE)), rpc.RRef([torch.full((3,), 6.0, device=THERE)])]


def reference_to(device: torch.device) -> rpc.RRef:
    return rpc.RRef(torch.ones(2, device=device))


def local(reference: rpc.RRef) -> Tensor:
    return reference.local_value()


def flags(x: Tensor) -> tuple[bool, bool]:
    return x.requires_grad, x.is_leaf


@rpc.functions.async_execution
def later(device: torch.device) -> Future:
    future = Future(devices=[THERE])
    future.set_result(torch.ones(2, device=device))
    return future


class Doubling(nn.Module):
    """A layer whose parameters lie on the device where it is asked for."""

    def __init__(self, device: torch.device | str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 3).to(device)

    def forward(self, x: Tensor) -> Tensor:
        return 2 * self.layer(x)

    def references(self) -> list[rpc.RRef]:
        return [rpc.RRef(parameter) for parameter in self.parameters()]

    def values(self) -> list[Tensor]:
        return [parameter.detach() for parameter in self.parameters()]


def without_maps(rank: int) -> None:
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    if rank == 0:
        on_cpu, on_gpu = torch.ones(2), torch.ones(2, device="cuda")
        assert rpc.rpc_sync("worker1", add, args=(on_cpu, on_cpu)).tolist() == [2, 2]
        assert rpc.rpc_sync("worker1", sum_there, args=(on_gpu.cpu(),)) == 2
        assert rpc.remote("worker1", torch.add, args=(on_cpu, 1)).to_here().tolist() == [2, 2]
        for send in (
            lambda: rpc.rpc_sync("worker1", add, args=(on_gpu, on_cpu)),
            lambda: rpc.rpc_sync("worker1", torch.add, args=(on_gpu, 1)),
            lambda: rpc.remote("worker1", add, args=(on_cpu, on_gpu)),
            lambda: rpc.remote("worker1", torch.add, args=(on_gpu, 1)),
            lambda: rpc.rpc_async("worker1", len, args=([nn.Linear(2, 2).cuda()],)),
        ):
            with pytest.raises(RuntimeError, match=f"{REFUSED}.*{NO_REQUEST}worker1, but found tensor on .*cuda:0"):
                send()
        for answer in (
            lambda: rpc.rpc_sync("worker1", made_there),
            lambda: rpc.remote("worker1", made_there).to_here(),
            lambda: rpc.rpc_async("worker1", torch.zeros, args=([2],), kwargs={"device": "cuda:1"}).wait(),
            lambda: rpc.rpc_sync("worker1", reference_to, args=(THERE,)).to_here(),
        ):
            with pytest.raises(RuntimeError, match=f"{REFUSED}.*{NO_ANSWER}"):
                answer()
        assert rpc.rpc_sync("worker1", add, args=(on_cpu, on_cpu)).tolist() == [2, 2], "the workers go on"
    rpc.shutdown()


def _calls() -> None:
    x, on_cpu = torch.arange(3.0, device=HERE), torch.ones(3)
    for answer in (
        rpc.rpc_sync("worker1", add, args=(x, x)),
        rpc.rpc_async("worker1", add, args=(x,), kwargs={"b": x}).wait(),
        rpc.remote("worker1", add, args=(x, x)).to_here(),
        rpc.rpc_sync("worker1", torch.add, args=(x, x)),
        rpc.rpc_async("worker1", torch.add, args=(x,), kwargs={"other": x}).wait(),
        rpc.remote("worker1", torch.add, args=(x, x)).to_here(),
        *rpc.rpc_sync("worker1", itself, args=({"sums": [x + x]},))["sums"],
    ):
        assert answer.device == HERE and answer.tolist() == [0, 2, 4]
    assert rpc.rpc_sync("worker1", device_of, args=(x,)) == THERE
    assert rpc.rpc_sync("worker1", device_of, args=(on_cpu,)).type == "cpu"
    assert rpc.rpc_sync("worker1", torch.zeros, args=([2],), kwargs={"device": "cuda:1"}).device == HERE

    copy = rpc.rpc_sync("worker1", itself, args=(x,))
    copy.fill_(9)
    assert x.tolist() == [0, 1, 2], "what comes back is a copy"
    turned = torch.arange(12.0, device=HERE).view(3, 4).t()
    back = rpc.rpc_sync("worker1", itself, args=(turned,))
    assert back.stride() == turned.stride() and torch.equal(back, turned)
    parameter = rpc.rpc_sync("worker1", itself, args=(nn.Parameter(x),))
    assert isinstance(parameter, nn.Parameter) and parameter.requires_grad and parameter.device == HERE
    module = rpc.rpc_sync("worker1", itself, args=(nn.Linear(3, 1).cuda(),))
    assert module.weight.device == HERE and module(x).shape == (1,)

    elsewhere = x.to(ELSEWHERE)
    for call in (add, torch.add):
        with pytest.raises(RuntimeError, match=f"{REFUSED}.*{NO_REQUEST}worker1 for device cuda:2 but received"):
            rpc.rpc_sync("worker1", call, args=(elsewhere, 1))
    for answer in (
        lambda: rpc.rpc_sync("worker1", ones_on, args=("cuda:2",)),
        lambda: rpc.remote("worker1", ones_on, args=("cuda:2",)).to_here(),
    ):
        with pytest.raises(RuntimeError, match=NOT_PREPARED):
            answer()
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        rpc.rpc_sync("worker1", add, args=(x, on_cpu))
    assert rpc.rpc_sync("worker1", add, args=(x, x)).device == HERE, "the workers go on"


def _references_and_futures() -> None:
    x = torch.arange(3.0, device=HERE)
    to_tensor, to_list = rpc.rpc_sync("worker1", references)
    assert to_tensor.to_here().device == HERE and to_tensor.to_here().tolist() == [5, 5, 5]
    assert to_list.to_here()[0].device == HERE
    assert to_tensor.rpc_sync().sum() == 15 and to_tensor.remote().sum().to_here().device == HERE
    assert to_tensor.rpc_async().add(x).wait().tolist() == [5, 6, 7]
    assert rpc.rpc_sync("worker1", local, args=(to_tensor,)).device == HERE
    own = rpc.RRef(x)
    assert isinstance(own, rpc.RRef) and own.local_value() is x and own.to_here() is x
    with pytest.raises(ValueError, match=NOT_PREPARED):
        rpc.rpc_sync("worker1", reference_to, args=(ELSEWHERE,))

    assert RemoteModule("worker1/cuda:1", nn.Linear, args=(3, 2))(x).device == HERE
    assert rpc.rpc_sync("worker1", later, args=(THERE,)).device == HERE
    with pytest.raises(RuntimeError, match=NOT_PREPARED):
        rpc.rpc_sync("worker1", later, args=(ELSEWHERE,))
    future = rpc.rpc_async("worker1", add, args=(x, x))
    assert future.then(lambda done: done.wait() + 1).wait().tolist() == [1, 3, 5]
    with pytest.raises(RuntimeError, match=r"device\(s\) cuda:2 which are not among the .* cuda:0"):
        future.then(lambda done: done.wait().to(ELSEWHERE)).wait()


def _gradients() -> None:
    for within in (contextlib.nullcontext, dist_autograd.context):
        for mode in (torch.enable_grad, torch.no_grad):
            assert _flags("cuda:0", within, mode) == _flags("cpu", within, mode)

    weight = torch.arange(3.0, device=HERE, requires_grad=True)
    with dist_autograd.context() as context:
        rpc.remote("worker1", torch.dot, args=(weight, weight)).backward(context)
        assert dist_autograd.get_gradients(context)[weight].tolist() == [0, 2, 4]

    alone, first = Doubling("cpu"), nn.Linear(3, 3)
    split, here = rpc.remote("worker1", Doubling, args=(THERE,)), nn.Linear(3, 3).cuda()
    here.load_state_dict(first.state_dict())
    plain = torch.optim.SGD([*first.parameters(), *alone.parameters()], lr=0.1, momentum=0.9)
    ours = [rpc.RRef(parameter) for parameter in here.parameters()]
    distributed = DistributedOptimizer(torch.optim.SGD, [*ours, *split.rpc_sync().references()], 0.1, momentum=0.9)
    for x in torch.randn(3, 4, 3):
        plain.zero_grad()
        alone(first(x)).pow(2).sum().backward()
        with dist_autograd.context() as context:
            out = split.rpc_sync().forward(here(x.cuda()))
            assert out.device == HERE
            dist_autograd.backward(context, [out.pow(2).sum()])
            found = dist_autograd.get_gradients(context)
            for ours_, theirs in zip(here.parameters(), first.parameters(), strict=True):
                assert found[ours_].device == HERE
                torch.testing.assert_close(found[ours_].cpu(), theirs.grad)
            distributed.step(context)
        plain.step()
    for ours_, theirs in zip(split.rpc_sync().values(), alone.parameters(), strict=True):
        assert ours_.device == HERE
        torch.testing.assert_close(ours_.cpu(), theirs.detach())


def _flags(device: str, within: type, mode: type) -> list:
    """Whether tensors need gradients and are leaves, there and when they come back."""
    leaf = torch.ones(3, device=device, requires_grad=True)
    inner = leaf * 2
    found = []
    for x in (leaf, inner):
        with within(), mode():
            found.append(rpc.rpc_sync("worker1", flags, args=(x,)))
            found.append(flags(rpc.rpc_sync("worker1", itself, args=(x,))))
            found.append(flags(rpc.rpc_sync("worker1", torch.add, args=(x, x))))
            found.append(flags(rpc.remote("worker1", add, args=(x, x)).to_here()))
    return found


def cpu_to_gpu(rank: int) -> None:
    start(rank, {"worker1": {"cpu": 2, 0: "cpu"}})
    if rank == 0:
        on_cpu, on_gpu = torch.ones(3), torch.ones(3, device=HERE)
        assert rpc.rpc_sync("worker1", device_of, args=(on_cpu,)) == ELSEWHERE
        assert rpc.rpc_sync("worker1", device_of, args=(on_gpu,)).type == "cpu"
        for call in (itself, torch.neg):
            assert rpc.rpc_sync("worker1", call, args=(on_cpu,)).device.type == "cpu"
            assert rpc.rpc_sync("worker1", call, args=(on_gpu,)).device == HERE
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            rpc.rpc_sync("worker1", torch.add, args=(on_cpu, on_gpu))
    rpc.shutdown()


finished = threading.Event()


def finish() -> None:
    finished.set()


def joining(rank: int) -> None:
    """Workers that come one by one, the one with the map first: maps are learned from those who are there."""
    joined = Path(os.environ["JOINED"])
    if rank == 1:
        _wait_for(joined.exists)
    start(rank, {"worker1": {0: 1}}, None, f"file://{joined}.store")
    if rank == 0:
        joined.touch()
        _wait_for(lambda: len(rpc.api._get_current_rpc_agent().get_worker_infos()) == 2)
        worker = rpc.get_worker_info("worker1")
        assert rpc.rpc_sync(worker, add, args=(torch.ones(2, device=HERE), 1)).device == HERE
        with pytest.raises(RuntimeError, match=f"{REFUSED}.*{NO_REQUEST}worker1 for device cuda:2"):
            rpc.rpc_sync(worker, add, args=(torch.ones(2, device=ELSEWHERE), 1))
        with pytest.raises(RuntimeError, match=NOT_PREPARED):
            rpc.rpc_sync(worker, ones_on, args=("cuda:2",))
        rpc.rpc_sync(worker, finish)
    else:
        assert finished.wait(60)
    rpc.shutdown()


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def _script() -> None:
    on_cpu, on_gpu = torch.zeros(2), torch.zeros(2, device=HERE)
    assert rpc.rpc_sync("worker1", plus_one, args=(on_gpu,)).device == HERE
    assert rpc.rpc_sync("worker1", plus_one, args=(on_cpu,)).tolist() == [1, 1]
    assert rpc.remote("worker1", plus_one, args=(on_cpu,)).to_here().tolist() == [1, 1]
    assert calls_itself("worker1", on_cpu).tolist() == [1, 1]
    for refused in (
        lambda: rpc.remote("worker1", plus_one, args=(on_gpu,)),
        lambda: calls_itself("worker1", on_gpu),
    ):
        with pytest.raises(NotImplementedError, match=r"do not simulate .*TorchScript.* with tensors on GPUs"):
            refused()


def with_a_map(rank: int) -> None:
    start(rank, {"worker1": {0: 1}})
    if rank == 0:
        _calls()
        _references_and_futures()
        _gradients()
        _script()
    rpc.shutdown()


with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)

    @torch.jit.script
    def plus_one(x: Tensor) -> Tensor:
        return x + 1

    @torch.jit.script
    def calls_itself(to: str, x: Tensor) -> Tensor:
        return rpc.rpc_sync(to, plus_one, (x,))
