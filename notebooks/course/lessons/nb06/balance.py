"""Fewer samples for the device that holds more: data parallelism by samples, in parts of chosen sizes.

In `nn.DataParallel` the first device also keeps the optimizer's state, the summed gradients and all gathered outputs,
so it is full first while the others have room (huggingface/transformers issue 279, 2019). Known cures share the batch
out unevenly, such as Balanced-DataParallel (Link-Li, 2020, after transformer-xl), whose rule stops at batches smaller
than its devices, at keyword arguments, lists, and a single device.

torch's scatter and gather know tensors only. Here what a batch is made of follows from types alone:

* a tensor (B, ...) holds B samples, a list holds one sample an entry, whatever the entry is: an image, a dict of boxes,
  a file name;
* a tuple, named tuple, dict or dataclass holds several such things about the same B samples;
* everything else (None, a string, a number, a 0-d tensor) is meant for all.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import parallel_apply, replicate


def balanced_chunks(rows: int, gpus: int, first: int | None = None) -> list[int]:
    """Rows for each GPU: `first` for the first, the rest in equal parts that differ by one row at most.

    The first GPU never gets more than an even share, so that a short last batch does not fill it: with fewer rows
    than GPUs it gets none. None for `first` means an even share. A single GPU gets all rows.

    Raises ValueError for negative numbers or fewer than one GPU.
    """
    if rows < 0 or gpus < 1 or (first is not None and first < 0):
        raise ValueError(f"`rows` and `first` must be at least 0, `gpus` at least 1, got {rows=}, {gpus=}, {first=}")
    if gpus == 1:
        return [rows]
    even = rows // gpus
    own = even if first is None else min(first, even)
    size, left_over = divmod(rows - own, gpus - 1)
    return [own, *(size + (k < left_over) for k in range(gpus - 1))]


class BalancedDataParallel(nn.Module):
    """`module` on every one of `devices`, `first` samples of a batch on the first of them, the others sharing the rest.

    It is called like `module`, and keeps it as `.module`. Batches are split by their samples (see `scatter_samples`):
    lists of images, keyword arguments, None and strings may be among the arguments. A device without samples is
    not called. Gradients are added up on the module's own device.

    On GPUs torch's own `replicate` and `parallel_apply` do the work. On CPUs `module` itself is called for one share
    after the other, so a test needs no GPU.

    Args:
        module: lies on `devices[0]`.
        devices: GPUs, or several times the CPU, as in `["cpu", "cpu"]`.
        first: samples for the first device, at most an even share; None for an even share; 0 leaves it to the
            outputs, the gradients and the optimizer.
        output_device: where results are joined, the first device by default; "cpu" is allowed.

    Raises ValueError when `devices` is empty, mixes GPUs with CPUs or has a GPU twice, or when `first` is negative.
    """

    def __init__(
        self,
        module: nn.Module,
        devices: Sequence[torch.device | str],
        first: int | None = None,
        output_device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.devices = [torch.device(device) for device in devices]
        only_cpus = {device.type for device in self.devices} == {"cpu"}
        only_gpus = all(device.type != "cpu" for device in self.devices)
        if not self.devices or not (only_cpus or (only_gpus and len(set(self.devices)) == len(self.devices))):
            raise ValueError(
                "`devices` must be different GPUs or several times the CPU, such as ['cuda:0', 'cuda:1'] or "
                f"['cpu', 'cpu'], got {[str(device) for device in self.devices]}"
            )
        balanced_chunks(0, len(devices), first)  # a bad `first` is told now, not in the first step
        self.module = module
        self.first = first
        self.output_device = torch.device(output_device or devices[0])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What `module` returns, joined over the devices. Raises ValueError where arguments hold unequal numbers."""
        batch = {"args": args, "kwargs": kwargs}
        sizes = balanced_chunks(count_samples(batch), len(self.devices), self.first)
        used = [k for k, size in enumerate(sizes) if size] or [0]  # an empty batch is the first device's
        devices = [self.devices[k] for k in used]
        shares = scatter_samples(batch, devices, [sizes[k] for k in used])
        return gather_samples(self._apply_to(shares, devices), self.output_device)

    def _apply_to(self, shares: list[Any], devices: list[torch.device]) -> list[Any]:
        """The outputs of `module` on each share."""
        if devices[0].type == "cpu":
            return [self.module(*share["args"], **share["kwargs"]) for share in shares]
        home = self.devices[0]
        # Copies start from the module's own device, also when it has no samples of its own.
        places = [home, *(device for device in devices if device != home)]
        replicas = replicate(self.module, places, detach=not torch.is_grad_enabled())[-len(devices) :]
        args, kwargs = [share["args"] for share in shares], [share["kwargs"] for share in shares]
        return parallel_apply(replicas, args, kwargs, devices)


def scatter_samples(batch: Any, devices: Sequence[torch.device | str], sizes: Sequence[int]) -> list[Any]:
    """One share of `batch` for each device: `sizes[k]` samples, in order, with all their tensors on `devices[k]`.

    An image is never cut, a dict of targets never divided (`nn.DataParallel` does both: pytorch/vision issue 1659).
    Autograd carries gradients back through the copies. A size of 0 gives a share of no samples.

    Raises:
        ValueError: `sizes` does not fit `devices`, or something in the batch has a different number of samples than
            sum(sizes); the message says what, by its path.
    """
    if len(sizes) != len(devices) or min(sizes, default=0) < 0:
        raise ValueError(f"`sizes` must hold a size of 0 or more for each of {len(devices)} devices, got {list(sizes)}")
    rows = sum(sizes)
    for path, count in _counts(batch, "batch"):
        if count != rows:
            raise ValueError(f"{path} holds {count} samples, but `sizes` {list(sizes)} add up to {rows}")
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [_share(batch, start, size, device) for start, size, device in zip(starts, sizes, devices, strict=True)]


def count_samples(batch: Any) -> int:
    """How many samples a batch holds: the rows of its tensors, the entries of its lists.

    Raises ValueError when they differ, or when there is no tensor and no list.
    """
    counts = _counts(batch, "batch")
    if not counts:
        raise ValueError("`batch` has no tensor with rows and no list, so it holds no samples to split")
    path, first = counts[0]
    for other, count in counts:
        if count != first:
            raise ValueError(f"{other} holds {count} samples, {path} holds {first}")
    return first


def gather_samples(shares: Sequence[Any], device: torch.device | str) -> Any:
    """The results of all replicas as one result, its tensors on `device`: what `scatter_samples` splits, joined.

    Tensors (B_k, ...) are joined along the rows, 0-d ones become a vector, lists are strung together, so
    detections stay with their image; tuples, dicts and dataclasses are joined field by field.

    Raises:
        TypeError: replicas returned different types, or numbers or strings that differ: nobody could tell which is
            right. A list with an entry for each sample is the way to return such things.
        ValueError: dicts with different keys, or tuples of different lengths.
    """
    first = shares[0]
    kinds = [Tensor if isinstance(share, Tensor) else type(share) for share in shares]
    if len(set(kinds)) > 1:
        raise TypeError(f"replicas returned different types: {', '.join(kind.__name__ for kind in kinds)}")
    if isinstance(first, Tensor):
        return torch.cat([torch.atleast_1d(share).to(device) for share in shares])
    if isinstance(first, list):
        return [_mapped(sample, lambda tensor: tensor.to(device)) for share in shares for sample in share]
    if _parts(first) is None:
        if any(share != first for share in shares):
            raise TypeError(f"replicas returned {list(shares)}: return a tensor, or a list with an entry a sample")
        return first
    held = [_parts(share) or {} for share in shares]
    if any(parts.keys() != held[0].keys() for parts in held):
        raise ValueError(f"replicas returned different parts: {[list(parts) for parts in held]}")
    return _rebuilt(first, {name: gather_samples([parts[name] for parts in held], device) for name in held[0]})


def _counts(value: Any, path: str) -> list[tuple[str, int]]:
    """Path and number of samples of everything in `value` that has any."""
    if isinstance(value, Tensor):
        return [(path, len(value))] if value.dim() else []
    if isinstance(value, list):
        return [(path, len(value))]
    parts = _parts(value) or {}
    return [found for name, part in parts.items() for found in _counts(part, f"{path}[{name!r}]")]


def _share(value: Any, start: int, size: int, device: torch.device | str) -> Any:
    if isinstance(value, Tensor):
        return (value.narrow(0, start, size) if value.dim() else value).to(device)
    if isinstance(value, list):
        return [_mapped(sample, lambda tensor: tensor.to(device)) for sample in value[start : start + size]]
    parts = _parts(value)
    if parts is None:
        return value
    return _rebuilt(value, {name: _share(part, start, size, device) for name, part in parts.items()})


def _mapped(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """A sample with `function` applied to its tensors, lists included: inside a sample nothing is split."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, list):
        return [_mapped(part, function) for part in value]
    parts = _parts(value)
    return value if parts is None else _rebuilt(value, {n: _mapped(part, function) for n, part in parts.items()})


def _parts(value: Any) -> dict[Any, Any] | None:
    """The named parts of a tuple, dict or dataclass; None for what has none."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, tuple):
        return dict(enumerate(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return None


def _rebuilt(like: Any, parts: dict[Any, Any]) -> Any:
    """A container of the type of `like` with other parts."""
    if isinstance(like, dict):
        return type(like)(parts)
    if isinstance(like, tuple):
        return like._make(parts.values()) if hasattr(like, "_make") else type(like)(parts.values())
    return replace(like, **parts)
