"""Four ways to compute the same twelve bottlenecks, for measuring them against each other.

All read (B, in, H, W), shared by the blocks, and give (B, len(blocks) * out, H', W').
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from course.kit.post_002 import Bottleneck
from frcnn_lite.layers import pack_serial_blocks


class Form(NamedTuple):
    """A way to compute: the call, and the parameters whose gradients its backward fills."""

    call: Callable[[Tensor], Tensor]
    parameters: list[Tensor]

    def step(self, x: Tensor) -> None:
        """One forward, and the gradients of half the output's squared norm, replacing old ones."""
        for tensor in [x, *self.parameters]:
            tensor.grad = None
        out = self.call(x)
        out.backward(out.detach())


class BottleneckLoop(nn.Module):
    """The loop as a module."""

    def __init__(self, blocks: Sequence[Bottleneck]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([block(x) for block in self.blocks], dim=1)


def bottleneck_forms(blocks: Sequence[Bottleneck]) -> dict[str, Form]:
    """The same blocks as `loop`, `grouped`, `vmap` (torch.func) and `bmm` (grouped, its last 1x1 as a matmul).

    Each form owns a copy of the weights, so that one step of one form leaves the others as they are.
    """
    loop = BottleneckLoop([deepcopy(block) for block in blocks])
    grouped, by_matmul = (pack_serial_blocks(blocks, Bottleneck(blocks[0].config, len(blocks))) for _ in range(2))
    return {
        "loop": Form(loop, list(loop.parameters())),
        "grouped": Form(grouped, list(grouped.parameters())),
        "vmap": _vmap_form(blocks),
        "bmm": Form(lambda x: _expand_by_matmul(by_matmul, x), list(by_matmul.parameters())),
    }


def _vmap_form(blocks: Sequence[Bottleneck]) -> Form:
    """Model ensembling of the PyTorch tutorial of that name: stacked weights, one call mapped over them."""
    parameters, buffers = stack_module_state(list(blocks))
    skeleton = deepcopy(blocks[0]).to("meta")
    mapped = vmap(lambda p, b, x: functional_call(skeleton, (p, b), (x,)), in_dims=(0, 0, None))
    return Form(lambda x: mapped(parameters, buffers, x).transpose(0, 1).flatten(1, 2), list(parameters.values()))


def _expand_by_matmul(grouped: Bottleneck, x: Tensor) -> Tensor:
    """The grouped forward whose last convolution, 1x1, is written as the matrix product that it is."""
    out = grouped.relu(grouped.bn1(grouped.conv1(x)))
    out = grouped.relu(grouped.bn2(grouped.conv2(out)))
    height, width = out.shape[2:]
    weight = grouped.conv3.weight.view(grouped.groups, -1, grouped.config.mid_channels)
    pixels = out.unflatten(1, (grouped.groups, -1)).flatten(3)
    out = grouped.bn3((weight @ pixels).flatten(1, 2).unflatten(2, (height, width)))
    return grouped.relu(grouped.add_shortcut(out, x))
