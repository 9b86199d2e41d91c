"""What one rank holds on its GPU, by kind, at the end of its second forward."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from course.kit.memory_kinds import settled

OWN = "the plan's own"


def by_kind(wrap: Callable[[nn.Module], nn.Module], net: nn.Module, rows: Tensor) -> dict[str, int]:
    """Bytes of weights, gradients, optimizer, activations, and what the plan needs besides, after a step of AdamW.

    Args:
        wrap: the plan: what it makes of a net.
        net: on the CPU; `wrap` moves it.
        rows: on this rank's GPU. They are not counted.
    """
    before = settled()
    net = wrap(net)
    adam = torch.optim.AdamW(net.parameters())
    net(rows).square().mean().backward()
    adam.step()
    states = (state[name] for state in adam.state.values() for name in ("exp_avg", "exp_avg_sq"))
    found = {
        "weights": _on_gpu(net.parameters()),
        "gradients": _on_gpu(weight.grad for weight in net.parameters() if weight.grad is not None),
        "optimizer": _on_gpu(states),
    }
    loss = net(rows).square().mean()
    total = settled() - before
    del loss
    found["activations"] = total - (settled() - before)
    return found | {OWN: total - sum(found.values())}


def _on_gpu(tensors: Iterable[Tensor]) -> int:
    """Bytes of this rank's parts that are on a GPU: those of a plan that offloads are not."""
    parts = (tensor.to_local() if isinstance(tensor, DTensor) else tensor for tensor in tensors)
    return sum(part.nbytes for part in parts if part.is_cuda)
