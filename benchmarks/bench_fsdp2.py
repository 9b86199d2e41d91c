"""What virtual GPUs add to a training step that FSDP2 divides over two ranks, beside the same step on CPU tensors.

    python benchmarks/bench_fsdp2.py

Both run over gloo, which is what stands behind the name of NCCL on virtual GPUs. The runs alternate, so a busy machine
slows both, and the losses are checked to be equal before the times are compared.
"""

from __future__ import annotations

import statistics
import time

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import vgpu
from frcnn_lite.parallel.launch import run_ranks
from frcnn_lite.parallel.process_group import process_group

RANKS, LAYERS, WARM, STEPS, ROUNDS = 2, 4, 3, 15, 3
SIZES = {"width 64, 128 words a rank": (64, 4, 32), "width 256, 512 words a rank": (256, 4, 128)}  # width, batch, words
Measured = tuple[list[float], list[float]]


def train(device_type: str, width: int, batch: int, words: int) -> Measured:
    """The life of a rank: its losses, and the processor time of each step in milliseconds, gloo's threads included."""
    torch.set_num_threads(1)
    if device_type == "cuda":
        vgpu.enable(RANKS, force=True)
    with process_group("cpu" if device_type == "cpu" else None) as device:
        torch.manual_seed(0)
        layers = (nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True) for _ in range(LAYERS))
        net = nn.Sequential(*layers).to(device)
        mesh = init_device_mesh(device.type, (RANKS,))
        for module in (*net, net):
            fully_shard(module, mesh=mesh)
        adam = torch.optim.AdamW(net.parameters(), lr=1e-3)
        x = torch.randn(RANKS, batch, words, width)[mesh.get_local_rank()].to(device)
        losses, times = [], []
        for _ in range(WARM + STEPS):
            started = time.process_time()
            losses.append(step(net, adam, x).item())
            times.append((time.process_time() - started) * 1e3)
    return losses, times[WARM:]


def step(net: nn.Module, adam: torch.optim.Optimizer, x: Tensor) -> Tensor:
    """A step of training and its loss."""
    adam.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    adam.step()
    return loss.detach()


def milliseconds(device_type: str, size: tuple[int, int, int]) -> tuple[list[float], float]:
    """The losses of the first rank, and the median time of a step on all ranks together."""
    ranks = run_ranks(train, RANKS, device_type, *size, timeout=300)
    return ranks[0][0], sum(statistics.median(times) for _, times in ranks)


def main() -> None:
    """Print a line for each size."""
    print(f"torch {torch.__version__}; FSDP2 on {RANKS} ranks, {LAYERS} transformer layers, AdamW, one thread a rank")
    print(f"median of {ROUNDS} rounds of {STEPS} steps, milliseconds of processor time of all ranks")
    for name, size in SIZES.items():
        rounds = []
        for _ in range(ROUNDS):
            expected, plain = milliseconds("cpu", size)
            found, virtual = milliseconds("cuda", size)
            torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-4, atol=1e-6)
            rounds.append((plain, virtual, virtual / plain))
        plain, virtual, ratio = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name}: CPU over gloo {plain:.1f}, virtual GPUs {virtual:.1f}, {ratio:.2f} times")


if __name__ == "__main__":
    main()
