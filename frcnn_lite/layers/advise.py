"""Is the loop-free form worth it for *your* shapes? Time them and say so, in both directions."""

import statistics
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from frcnn_lite.layers.bottleneck import Bottleneck, BottleneckConfig
from frcnn_lite.layers.forms import BottleneckLoop, Form, bottleneck_forms
from frcnn_lite.layers.group_linear import GroupLinear
from frcnn_lite.layers.grouped_bottleneck import GroupedBottleneck
from frcnn_lite.layers.measure import median_ratio, paired_times
from frcnn_lite.layers.pack import pack_serial_blocks

# Differences below this share are within what two runs of the same code differ by.
NOISE = 0.10


@dataclass(frozen=True)
class Advice:
    """Median milliseconds of each form, and for each how many times the loop's time it takes."""

    what: str
    milliseconds: dict[str, float]
    against_loop: dict[str, float]

    @property
    def fastest(self) -> str:
        return min(self.against_loop, key=self.against_loop.__getitem__)

    @property
    def use_grouped(self) -> bool:
        """Whether the grouped form beats the loop by more than noise."""
        return self.against_loop["grouped"] < 1 - NOISE

    def __str__(self) -> str:
        lines = [self.what]
        for name, ms in sorted(self.milliseconds.items(), key=lambda item: item[1]):
            lines.append(f"  {name:<8} {ms:10.3f} ms   {self.against_loop[name]:5.2f} x loop")
        return "\n".join([*lines, f"  {self._verdict()}"])

    def _verdict(self) -> str:
        ratio = self.against_loop["grouped"]
        if self.use_grouped:
            return f"use the grouped form: {1 / ratio:.1f} times as fast as the loop"
        if ratio <= 1 + NOISE:
            return "the grouped form gains nothing here: keep whichever reads better"
        return f"do not use the grouped form here: {ratio:.1f} times the time of the loop"


def advise_bottleneck(
    config: BottleneckConfig,
    groups: int,
    shape: tuple[int, int, int],
    *,
    device: str | torch.device = "cpu",
    channels_last: bool = False,
    backward: bool = True,
    rounds: int = 10,
) -> Advice:
    """Time `groups` bottlenecks in four forms on inputs of `shape` (B, H, W); training mode, forward and backward.

    The answer holds for this machine, its number of threads and these shapes only; that is why it is measured.
    """
    layout = torch.channels_last if channels_last else torch.contiguous_format
    blocks = [Bottleneck(config).to(device).to(memory_format=layout) for _ in range(groups)]
    batch, height, width = shape
    x = torch.randn(batch, config.in_channels, height, width, device=device).to(memory_format=layout)
    what = f"{groups} bottlenecks of {config.in_channels} channels, batch {batch}, {height}x{width} on {x.device}"
    return _advice(what, bottleneck_forms(blocks), x, backward, rounds)


def advise_group_linear(
    nclasses_per_group: Sequence[int],
    group_channels: int,
    class_channels: int,
    batch: int,
    *,
    device: str | torch.device = "cpu",
    backward: bool = True,
    rounds: int = 20,
) -> Advice:
    """Time `GroupLinear` against the loop over its Linears on a batch; forward and backward."""
    layer = GroupLinear(len(nclasses_per_group), nclasses_per_group, group_channels, class_channels).to(device)
    linears, index = layer.to_linears(), layer.class_group.tolist()
    forms = {
        "loop": Form(
            lambda x: torch.stack([linear(x[:, g]) for linear, g in zip(linears, index, strict=True)], dim=1),
            list(linears.parameters()),
        ),
        "grouped": Form(layer, list(layer.parameters())),
    }
    x = torch.randn(batch, layer.n_groups, group_channels, device=device, requires_grad=backward)
    what = f"{layer.n_classes} Linears {group_channels} -> {class_channels}, batch {batch} on {x.device}"
    return _advice(what, forms, x, backward, rounds)


def faster_form(blocks: Sequence[Bottleneck], x: Tensor, rounds: int = 10) -> GroupedBottleneck | BottleneckLoop:
    """The grouped module of `blocks` where it beats their loop on inputs like `x`, else the loop: same interface.

    Timed forward and backward on copies, so that the blocks' gradients and running statistics stay untouched.
    """
    grouped, loop = pack_serial_blocks(blocks), BottleneckLoop([deepcopy(block) for block in blocks])
    forms = {name: Form(m, list(m.parameters())) for name, m in (("grouped", grouped), ("loop", loop))}
    if _advice("", forms, x.detach(), True, rounds).use_grouped:
        return pack_serial_blocks(blocks)
    return BottleneckLoop(blocks)


def _advice(what: str, forms: dict[str, Form], x: Tensor, backward: bool, rounds: int) -> Advice:
    calls = {name: lambda form=form: form.step(x, backward) for name, form in forms.items()}
    times = paired_times(calls, rounds, x.device)
    milliseconds = {name: 1e3 * statistics.median(seconds) for name, seconds in times.items()}
    return Advice(what, milliseconds, {name: median_ratio(times, name, "loop") for name in times})
