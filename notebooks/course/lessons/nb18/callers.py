"""Who calls the guide's detector: one GPU, `nn.DataParallel`, and `parallel_apply` without `devices`; and what comes of
a step."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from course.kit import figures
from course.kit import guide_2017 as guide

Caller = Callable[[nn.Module, Sequence[int], int], Tensor]


def one_by_one(net: nn.Module, devices: Sequence[int], images: int) -> Tensor:
    return torch.stack([net(*guide.blob(k)) for k in range(images)])


def data_parallel(net: nn.Module, devices: Sequence[int], images: int) -> Tensor:
    return nn.DataParallel(guide.PerImage(net), list(devices))(torch.arange(images))  # type: ignore[no-any-return]


def no_devices(net: nn.Module, devices: Sequence[int], images: int) -> Tensor:
    """What the guide started from."""
    replicas = nn.parallel.replicate(net, list(devices))  # type: ignore[attr-defined]
    losses = nn.parallel.parallel_apply(replicas, [guide.blob(k) for k in range(images)])
    return nn.parallel.gather(losses, 0)  # type: ignore[no-any-return]


CALLERS: dict[str, Caller] = {"nn.DataParallel": data_parallel, "parallel_apply, no devices": no_devices}


def step(
    parts: Mapping[str, Callable[..., Any]], run: Caller, devices: Sequence[int] = (0, 1), images: int = 2
) -> list[Tensor]:
    """The losses of the pictures, and the gradients of their mean."""
    net = guide.build(parts)
    losses = run(net, devices, images)
    losses.mean().backward()
    return [losses.detach(), *(p.grad for p in net.parameters() if p.grad is not None)]


def equal(ours: Sequence[Tensor], theirs: Sequence[Tensor], tolerance: float = 1e-5) -> bool:
    return all(bool((a - b).abs().max() <= tolerance * b.abs().max()) for a, b in zip(ours, theirs, strict=True))


def ending(parts: Mapping[str, Callable[..., Any]], run: Caller, expected: Sequence[Tensor]) -> figures.Ending:
    """How a step ends: right, if its losses and gradients are `expected`, else wrong; or it raises."""
    try:
        return figures.Ending("right" if equal(step(parts, run), expected) else "wrong")
    except (RuntimeError, ValueError):
        return figures.Ending("raises")


def class_loss(build_loss: Callable[..., Any], labels: Sequence[int]) -> str:
    """The class loss for regions with these labels, equal scores for all 11 classes."""
    column = torch.tensor(labels, device="cuda:0")[:, None]  # noqa: FL004 one GPU; (S, 1), as the layer gives them
    scores, boxes = (torch.zeros(len(labels), n, device="cuda:0") for n in (11, 44))  # noqa: FL004 the same
    loss, _ = build_loss(SimpleNamespace(debug=False), scores, boxes, (None, column, boxes, boxes, boxes))
    return f"{loss.item():.3f}"
