"""The detector with its parameters, gradients and optimizer state divided over the ranks, beside the whole of DDP."""

from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.parallel import reduce_loss


def compare_with_ddp(rank: int) -> dict[str, float]:
    """One step of the detector with `fully_shard`, and one with DDP.

    Returns the shares of parameters, gradients and optimizer state that this rank holds, and the largest difference of
    a gradient from DDP's, as a share of the largest gradient.
    """
    model, other = (FasterRCNN(FasterRCNNConfig()).double() for _ in range(2))
    other.load_state_dict(model.state_dict())
    mesh = distributed.device_mesh.init_device_mesh("cpu", (2,))
    for part in (*model.children(), model):
        fully_shard(part, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters())
    detector_loss(model, rank).backward()
    optimizer.step()
    gradients: list[Any] = [parameter.grad for parameter in model.parameters()]
    moments = [state["exp_avg"] for state in optimizer.state.values()]
    shares: dict[str, list[Any]] = {
        "parameters": [*model.parameters()],
        "gradients": gradients,
        "a moment of Adam": moments,
    }
    found = {name: sum(map(_held, tensors)) / sum(map(Tensor.numel, tensors)) for name, tensors in shares.items()}
    ddp = DistributedDataParallel(other)
    detector_loss(ddp, rank).backward()
    theirs = [torch.zeros(()) if parameter.grad is None else parameter.grad for parameter in other.parameters()]
    largest = max(gradient.abs().max() for gradient in theirs)
    apart = [(a.full_tensor() - b).abs().max() / largest for a, b in zip(gradients, theirs, strict=True)]
    return {**found, "difference": max(apart).item()}


def detector_loss(net: nn.Module, rank: int, objects: int = 1) -> Tensor:
    """The loss of two pictures of noise, in the dtype of the model, with `objects` boxes each."""
    dtype = next(net.parameters()).dtype
    generator = torch.Generator().manual_seed(rank)
    images = torch.rand(2, 3, 128, 128, generator=generator, dtype=dtype)
    boxes = torch.tensor([[10.0, 10, 50, 60]], dtype=dtype).expand(2, 1, 4)
    labels = torch.full((2, 1), 0 if objects else -1)
    parts = net(images, boxes, labels, torch.arange(2))
    return torch.stack([*reduce_loss(parts.sums, parts.counts).values()]).sum()


def _held(tensor: Any) -> int:
    """Elements of a distributed tensor that this rank holds."""
    return tensor.to_local().numel()
