"""Where one training step of `nn.DataParallel` put things: rows, copies of weights, gradients, and their sums."""

import operator
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from frcnn_lite.parallel.row_trace import RowTrace, trace_rows


@dataclass(frozen=True)
class HeldTensor:
    """A parameter or buffer as one replica holds it. `copied` is False where it is the memory of the original."""

    name: str
    device: torch.device
    nbytes: int
    copied: bool


@dataclass
class PlacementTrace:
    """What `trace_placement` saw.

    rows: the calls of the replicas, as `trace_rows` records them;
    held: every parameter and buffer of every replica that was called;
    gradients: (name, device) for each gradient that a replica computed;
    sums: name -> device of the gradient that arrived at the module's own parameter.
    """

    rows: RowTrace
    held: list[HeldTensor] = field(default_factory=list)
    gradients: list[tuple[str, torch.device]] = field(default_factory=list)
    sums: dict[str, torch.device] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bytes_copied_to(self, device: torch.device) -> int:
        """Bytes of parameters and buffers that were copied to `device` for this step."""
        return sum(tensor.nbytes for tensor in self.held if tensor.copied and tensor.device == device)

    def record(self, original: nn.Module, replica: nn.Module) -> None:
        """Note what `replica` holds, and ask autograd to report its gradients. Replicas call it from their threads."""
        for name, tensor in (*original.named_parameters(), *original.named_buffers()):
            held: Tensor = operator.attrgetter(name)(replica)
            with self._lock:
                copied = held.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()
                self.held.append(HeldTensor(name, held.device, held.numel() * held.element_size(), copied))
            if held.requires_grad:
                held.register_hook(self._reporter(name))

    def _reporter(self, name: str) -> Any:
        def report(gradient: Tensor) -> None:
            with self._lock:
                self.gradients.append((name, gradient.device))

        return report


@contextmanager
def trace_placement(module: nn.Module) -> Iterator[PlacementTrace]:
    """Record a step, forward and backward, of an `nn.DataParallel` (or of a bare module).

        with trace_placement(dp) as trace:
            dp(x).sum().backward()

    Nothing is patched: replicas share the hooks of the module they are copied from, and tensors take hooks of their
    own. Trace one step at a time.
    """
    original = module.module if isinstance(module, nn.DataParallel) else module
    with ExitStack() as stack:
        trace = PlacementTrace(stack.enter_context(trace_rows(module)))
        hook = original.register_forward_pre_hook(lambda replica, _: trace.record(original, replica))
        stack.callback(hook.remove)
        for name, parameter in original.named_parameters():
            if parameter.requires_grad:
                arrived = parameter.register_hook(lambda grad, name=name: trace.sums.update({name: grad.device}))
                stack.callback(arrived.remove)
        yield trace
