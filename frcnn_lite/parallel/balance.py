"""Fewer samples for the device that holds more: data parallelism with parts of chosen sizes.

In `nn.DataParallel` the first device also keeps the optimizer's state, the summed gradients and all gathered outputs,
so it is full first while the others have room (huggingface/transformers issue 279, 2019). Known cures share the batch
out unevenly, such as Balanced-DataParallel (Link-Li, 2020, after transformer-xl), whose rule stops at batches smaller
than its devices, at keyword arguments, lists, and a single device.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from frcnn_lite.parallel.four_calls import parallel_apply, replicate
from frcnn_lite.parallel.samples import count_samples, gather_samples, scatter_samples


def balanced_chunks(rows: int, devices: int, first: int | None = None) -> list[int]:
    """Rows for each device: `first` for the first, the rest in equal parts that differ by one row at most.

    The first device never gets more than an even share, so that a short last batch does not fill it: with fewer rows
    than devices it gets none. None for `first` means an even share. A single device gets all rows.

    Raises ValueError for negative numbers or fewer than one device.
    """
    if rows < 0 or devices < 1 or (first is not None and first < 0):
        raise ValueError(f"want rows >= 0, devices >= 1, first >= 0, got rows={rows}, {devices=}, {first=}")
    if devices == 1:
        return [rows]
    even = rows // devices
    own = even if first is None else min(first, even)
    size, left_over = divmod(rows - own, devices - 1)
    return [own, *(size + (k < left_over) for k in range(devices - 1))]


class BalancedDataParallel(nn.Module):
    """`module` on every one of `devices`, `first` samples of a batch on the first of them, the others sharing the rest.

    It is called like `module`, and keeps it as `.module`. Batches are split by their samples (see `scatter_samples`):
    lists of images, keyword arguments, None and strings may be among the arguments. A device without samples is
    not called. Gradients are added up on the module's own device.

    Args:
        module: lies on `devices[0]`.
        devices: any, `["cpu", "cpu"]` too.
        first: samples for the first device, at most an even share; None for an even share; 0 leaves it to the
            outputs, the gradients and the optimizer.
        output_device: where results are joined, the first device by default; "cpu" is allowed.
    """

    def __init__(
        self,
        module: nn.Module,
        devices: Sequence[torch.device | str],
        first: int | None = None,
        output_device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        if not devices:
            raise ValueError("devices is empty; name at least one, such as ['cuda:0', 'cuda:1'] or ['cpu', 'cpu']")
        balanced_chunks(0, len(devices), first)  # a bad `first` is told now, not in the first step
        self.module = module
        self.devices = [torch.device(device) for device in devices]
        self.first = first
        self.output_device = torch.device(output_device or devices[0])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What `module` returns, joined over the devices. Raises ValueError where arguments hold unequal numbers."""
        batch = {"args": args, "kwargs": kwargs}
        sizes = balanced_chunks(count_samples(batch), len(self.devices), self.first)
        used = [k for k, size in enumerate(sizes) if size] or [0]  # an empty batch is the first device's
        devices = [self.devices[k] for k in used]
        shares = scatter_samples(batch, devices, [sizes[k] for k in used])
        own_args, own_kwargs = [share["args"] for share in shares], [share["kwargs"] for share in shares]
        outputs = parallel_apply(replicate(self.module, devices), own_args, own_kwargs, devices)
        return gather_samples(outputs, self.output_device)
