"""What the workers of test_vgpu_rpc.py do: importable by name in the child."""

import re

import pytest
import torch
from torch import Tensor, nn
from torch.distributed import rpc

CUDAS_WORDS = re.escape("TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU")


def add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def made_there() -> Tensor:
    return torch.ones(2, device="cuda")


def sum_there(x: Tensor) -> float:
    return x.cuda().sum().item()


def calls(rank: int) -> None:
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
            lambda: rpc.rpc_sync("worker1", made_there),
        ):
            with pytest.raises(RuntimeError, match=CUDAS_WORDS):
                send()
        assert rpc.rpc_sync("worker1", add, args=(on_cpu, on_cpu)).tolist() == [2, 2], "the workers go on"
    rpc.shutdown()
