"""What the notes of 2021 leave out: a model with the parts that they name, and what their schedule finds around it."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.files import POSTS


class All_Model(nn.Module):  # the name is the notes'
    """Three parts: a backbone of two layers, `conv_X` and `seg_head`, eight tensors together."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
        self.conv_X = nn.Conv2d(4, 4, 1)
        self.seg_head = nn.Conv2d(4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.seg_head(self.conv_X(self.backbone(x)))
        return out


def rates_by_hand(
    rates: Mapping[str, float], warmup: int, milestones: Sequence[int], epochs: int
) -> dict[str, list[float]]:
    """The rate of each group in epochs 1 to `epochs`, as the function in `posts/004_milestones.py` sets it.

    rates: group -> the rate that it has at first; the greatest is the base rate.
    """
    around: dict[str, Any] = {"args": SimpleNamespace(warmup=warmup, base_lr=max(rates.values()))}
    exec((POSTS / "004_milestones.py").read_text(encoding="utf-8"), around)
    optimizer = torch.optim.SGD([{"params": [nn.Parameter()], "lr": rate} for rate in rates.values()])
    taken: dict[str, list[float]] = {f"{name}, by hand": [] for name in rates}
    for epoch in range(1, epochs + 1):
        around["adjust_learning_rate"](optimizer, epoch, milestones=milestones)
        for line, group in zip(taken.values(), optimizer.param_groups, strict=True):
            line.append(group["lr"])
    return taken
