"""How many bytes each GPU holds through one training step, sampled by hooks: on real GPUs as on virtual ones."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class MemorySample:
    """Bytes on one device at the end of `stage`: `held` then, and the most that was held since the sample before."""

    stage: str
    device: torch.device
    held: int
    peak: int


@dataclass
class MemoryTrace:
    """What `trace_memory` saw, and `mark`, by which the caller names further stages."""

    devices: list[torch.device]
    samples: list[MemorySample] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def mark(self, stage: str) -> None:
        """Sample every device: `stage` ends here."""
        for device in self.devices:
            self.sample(stage, device)

    def sample(self, stage: str, device: torch.device) -> None:
        """Sample one device. Hooks call it in the threads of replicas and of backward."""
        held, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        with self._lock:
            self.samples.append(MemorySample(stage, device, held, peak))

    @property
    def stages(self) -> list[str]:
        """The stages in their order, which no race of threads can change: each device passes them in the same."""
        return list(dict.fromkeys(sample.stage for sample in self.samples))

    def of(self, device: torch.device) -> dict[str, MemorySample]:
        """The samples of a device by stage, the last of a name."""
        return {sample.stage: sample for sample in self.samples if sample.device == device}

    def held(self, stage: str) -> list[int]:
        """Bytes on each device at the end of a stage. Raises KeyError where a device had no part in it."""
        return [self.of(device)[stage].held for device in self.devices]

    @property
    def peaks(self) -> list[int]:
        """The most bytes that each device held at any time."""
        return [max(sample.peak for sample in self.samples if sample.device == device) for device in self.devices]


@contextmanager
def trace_memory(module: nn.Module, devices: Sequence[torch.device]) -> Iterator[MemoryTrace]:
    """Record memory of `devices` while `module`, an `nn.DataParallel`, a like of it or a bare module, takes a step.

        with trace_memory(dp, gpus) as memory:
            loss = dp(x).sum()
            memory.mark("loss")
            loss.backward()
            memory.mark("backward")

    Samples are taken after the forward of each child of the wrapped module, on the replica's own device; after its
    backward, when the gradient of its input is there; and at every `mark`. What a device holds is what PyTorch's
    allocator has given out (`memory_allocated`), without contexts and caches. The peaks of `torch.cuda` start anew.

    Raises ValueError for a device that is no GPU.
    """
    if not devices or any(device.type != "cuda" for device in devices):
        raise ValueError(f"devices must be GPUs, whose memory is counted, got {[str(d) for d in devices]}")
    trace, inner = MemoryTrace(list(devices)), getattr(module, "module", module)
    with ExitStack() as stack:
        for device in devices:
            torch.cuda.reset_peak_memory_stats(device)
        for name, child in inner.named_children():
            for hook in _hooks(trace, name, child):
                stack.callback(hook.remove)
        yield trace


def _hooks(trace: MemoryTrace, name: str, child: nn.Module) -> list[Any]:
    """Hooks on a child; replicas share them, because `replicate` copies a module's `__dict__`."""

    def arrives(_: nn.Module, args: Any) -> None:
        for tensor in tree_leaves(args):
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                tensor.register_hook(lambda gradient: trace.sample(f"backward {name}", gradient.device))

    def leaves(_: nn.Module, args: Any, output: Any) -> None:
        made = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
        if made:
            trace.sample(f"forward {name}", made[0].device)

    return [child.register_forward_pre_hook(arrives), child.register_forward_hook(leaves)]
