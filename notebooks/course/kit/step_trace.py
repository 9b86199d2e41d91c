"""What one training step did on every device, seen by hooks: rows, copies of weights, gradients, and bytes.

Nothing is patched. `replicate` copies a module's `__dict__`, so replicas share the hooks of the module they are copied
from. It works for an `nn.DataParallel`, a wrapper like it and a bare module, on real GPUs as on virtual ones.
"""

import inspect
import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_leaves

from course.kit.memory_kinds import Ledger


@dataclass(frozen=True)
class ReplicaCall:
    """One call of the module: the `device` it ran on, and every tensor it was given, by the argument's name.

    A tensor inside a container is named by its path, such as `targets[0]['boxes']`. The tensors are on the CPU.
    """

    device: torch.device
    tensors: dict[str, Tensor]

    @property
    def rows(self) -> dict[str, int]:
        """Rows of every tensor argument that has a first dimension."""
        return {name: tensor.shape[0] for name, tensor in self.tensors.items() if tensor.dim() > 0}


@dataclass(frozen=True)
class HeldTensor:
    """A parameter or buffer as one replica holds it. `copied` is False where it is the memory of the original."""

    name: str
    device: torch.device
    nbytes: int
    copied: bool


@dataclass(frozen=True)
class MemorySample:
    """Bytes on one device at the end of `stage`: `held` then, and the most that was held since the sample before.

    kinds: `held` by what the bytes are for, in the order of `memory_kinds.KINDS`.
    """

    stage: str
    device: torch.device
    held: int
    peak: int
    kinds: dict[str, int]


@dataclass
class Trace:
    """What `trace_step` saw, and `mark`, by which the caller names stages for the memory.

    gpus: the devices whose memory is sampled;
    held: every parameter and buffer of every replica that was called;
    gradients: (name, device) for each gradient that a replica computed;
    sums: name -> device of the gradient that arrived at the module's own parameter;
    samples: of the memory of `gpus`, in the order in which they were taken.
    """

    gpus: list[torch.device] = field(default_factory=list)
    held: list[HeldTensor] = field(default_factory=list)
    gradients: list[tuple[str, torch.device]] = field(default_factory=list)
    sums: dict[str, torch.device] = field(default_factory=dict)
    samples: list[MemorySample] = field(default_factory=list)
    _calls: list[ReplicaCall] = field(default_factory=list)
    _hooks: list[Any] = field(default_factory=list)
    _ledger: Ledger = field(default_factory=Ledger)
    _lock: threading.Lock = field(default_factory=threading.Lock)  # replicas and backward run in threads

    @property
    def calls(self) -> list[ReplicaCall]:
        """All calls in order of device index, whichever thread came first; calls on one device in order of time."""
        with self._lock:
            return sorted(self._calls, key=lambda call: (call.device.type, call.device.index or 0))

    def find_rows(self, name: str, original: Tensor) -> list[list[int]]:
        """For each call, which rows of `original` (B, ...) its argument `name` carried, found by comparing values.

        Among rows of equal value the first that was not found before is taken, so a batch of identical rows is dealt
        out in order. A row that is not a row of `original` is reported as -1.

        Raises KeyError when a call had no argument of that name.
        """
        reference = _flat_rows(original.detach())
        unseen = torch.ones(len(reference), dtype=torch.bool)  # noqa: FL002 rows are compared on the CPU
        found = []
        for call in self.calls:
            if name not in call.tensors:
                raise KeyError(f"the call on {call.device} had no tensor {name!r}, but {sorted(call.tensors)}")
            found.append([_take(row, reference, unseen) for row in _flat_rows(call.tensors[name])])
        return found

    def bytes_copied_to(self, device: torch.device) -> int:
        """Bytes of parameters and buffers that were copied to `device` for this step."""
        return sum(tensor.nbytes for tensor in self.held if tensor.copied and tensor.device == device)

    def mark(self, stage: str, **kinds: Any) -> None:
        """Sample the memory of every device: `stage` ends here.

        What a stage has made is given by its kind, as in `mark("loss", outputs=[scores, loss])`: tensors in containers
        of any depth, which keep their kind for the rest of the step. The weights, their copies and their gradients, and
        what a replica is given and returns, have their kinds already.

        Raises ValueError for a kind that is not in `memory_kinds.NAMED`.
        """
        for kind, tensors in kinds.items():
            self._name(kind, tensors)
        for device in self.gpus:
            self._sample(stage, device)

    @property
    def stages(self) -> list[str]:
        """The stages in their order, which no race of threads can change: each device passes them in the same."""
        return list(dict.fromkeys(sample.stage for sample in self.samples))

    def samples_of(self, device: torch.device) -> dict[str, MemorySample]:
        """The samples of a device by stage, the last of a name."""
        return {sample.stage: sample for sample in self.samples if sample.device == device}

    def bytes_after(self, stage: str) -> list[int]:
        """Bytes on each device at the end of a stage. Raises KeyError where a device had no part in it."""
        return [self.samples_of(device)[stage].held for device in self.gpus]

    @property
    def peaks(self) -> list[int]:
        """The most bytes that each device held at any time."""
        return [max(sample.peak for sample in self.samples if sample.device == device) for device in self.gpus]

    def _sample(self, stage: str, device: torch.device) -> None:
        if device not in self.gpus:
            return
        held, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        with self._lock:
            self.samples.append(MemorySample(stage, device, held, peak, self._ledger.split(held, device)))

    def _name(self, kind: str, tensors: Any) -> None:
        with self._lock:
            self._ledger.name(kind, tensors)

    def _watch_calls(self, original: nn.Module) -> None:
        def called(replica: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            tensors = _named_tensors(replica, args, kwargs)
            device = _device_of(replica, tensors)
            call = ReplicaCall(device, {name: tensor.cpu() for name, tensor in tensors.items()})
            with self._lock:  # the copies do not count as memory of a GPU
                self._calls.append(call)
            self._name("batch", list(tensors.values()))
            for name, own in (*original.named_parameters(), *original.named_buffers()):
                self._note_held(name, own, operator.attrgetter(name)(replica))

        def returned(_: nn.Module, args: Any, output: Any) -> None:
            self._name("outputs", output)
            self._watch_gradients(output)

        self._hooks.append(original.register_forward_pre_hook(called, with_kwargs=True))
        self._hooks.append(original.register_forward_hook(returned))

    def _note_held(self, name: str, own: Tensor, held: Tensor) -> None:
        copied = held.untyped_storage().data_ptr() != own.untyped_storage().data_ptr()
        self._name("weights", held)
        with self._lock:
            self.held.append(HeldTensor(name, held.device, held.numel() * held.element_size(), copied))
        if held.requires_grad:
            self._hooks.append(held.register_hook(lambda gradient: self.gradients.append((name, gradient.device))))

    def _watch_gradients(self, output: Any) -> None:
        """Name the gradients of a replica's weights as soon as backward makes them, before they are added up."""
        waiting = [leaf.grad_fn for leaf in tree_leaves(output) if isinstance(leaf, Tensor) and leaf.grad_fn]
        seen = set()
        while waiting:
            node = waiting.pop()
            seen.add(node)
            for k, (following, _) in enumerate(node.next_functions):
                if type(following).__name__ in ("BroadcastBackward", "AccumulateGrad"):
                    named = node.register_hook(lambda made, _, k=k: self._name("gradients", made[k]))
                    self._hooks.append(named)
                elif following is not None and following not in seen:
                    waiting.append(following)

    def _watch_sums(self, original: nn.Module) -> None:
        for name, parameter in original.named_parameters():
            if parameter.requires_grad:
                arrived = parameter.register_hook(lambda grad, name=name: self.sums.update({name: grad.device}))
                self._hooks.append(arrived)
                added = parameter.register_post_accumulate_grad_hook(lambda own: self._name("gradients", own.grad))
                self._hooks.append(added)

    def _watch_memory(self, name: str, child: nn.Module) -> None:
        """Samples after the forward of a child, and after its backward, when the gradient of its input is there."""

        def arrives(_: nn.Module, args: Any) -> None:
            for tensor in tree_leaves(args):
                if isinstance(tensor, Tensor) and tensor.requires_grad:
                    tensor.register_hook(lambda gradient: self._sample(f"backward {name}", gradient.device))

        def leaves(_: nn.Module, args: Any, output: Any) -> None:
            made = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
            if made:
                self._sample(f"forward {name}", made[0].device)

        self._hooks += [child.register_forward_pre_hook(arrives), child.register_forward_hook(leaves)]


@contextmanager
def trace_step(module: nn.Module, gpus: Sequence[torch.device] = ()) -> Iterator[Trace]:
    """Record a step, forward and backward, of `module`: an `nn.DataParallel`, a wrapper like it, or a bare module.

        with trace_step(dp, gpus) as step:
            loss = dp(x).sum()
            step.mark("loss")
            loss.backward()
        [(str(call.device), call.rows) for call in step.calls]

    Trace one step at a time. With `gpus` their memory is sampled too: after the forward of each child of the wrapped
    module, on the replica's own device; after its backward; and at every `mark`. What a device holds is what PyTorch's
    allocator has given out (`memory_allocated`), without contexts and caches. The peaks of `torch.cuda` start anew.

    Raises ValueError where `gpus` holds a device that is not a GPU.
    """
    if any(device.type != "cuda" for device in gpus):
        raise ValueError(f"`gpus` must be GPUs, whose memory is counted, got {[str(device) for device in gpus]}")
    inner = getattr(module, "module", module)
    original = inner if isinstance(inner, nn.Module) else module
    step = Trace(list(gpus))
    with ExitStack() as stack:
        stack.callback(lambda: [hook.remove() for hook in step._hooks])
        step._name("weights", [*original.parameters(), *original.buffers()])
        step._name("gradients", [parameter.grad for parameter in original.parameters()])
        step._watch_calls(original)
        step._watch_sums(original)
        for gpu in gpus:
            torch.cuda.reset_peak_memory_stats(gpu)
        for name, child in original.named_children() if gpus else ():
            step._watch_memory(name, child)
        yield step


def _named_tensors(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor]:
    try:
        arguments = inspect.signature(module.forward).bind_partial(*args, **kwargs).arguments
    except TypeError:  # the call itself will fail; the trace still shows what arrived
        arguments = {f"args[{i}]": value for i, value in enumerate(args)} | kwargs
    leaves = {
        name + keystr(path): leaf
        for name, value in arguments.items()
        for path, leaf in tree_flatten_with_path(value)[0]
    }
    return {name: leaf.detach() for name, leaf in leaves.items() if isinstance(leaf, Tensor)}


def _device_of(module: nn.Module, tensors: dict[str, Tensor]) -> torch.device:
    """Where a call runs: a replica has no `.parameters()`, but scatter has put its arguments on its device."""
    for tensor in (*tensors.values(), *module.parameters(), *module.buffers()):
        return tensor.device
    return torch.device("cpu")


def _flat_rows(tensor: Tensor) -> Tensor:
    """(B, ...) on any device to (B, D) on the CPU; a (B,) tensor has rows of one number."""
    return tensor.cpu().unsqueeze(-1).flatten(1)


def _take(row: Tensor, reference: Tensor, unseen: Tensor) -> int:
    """Position of the first row of `reference` that equals `row`, an unseen one if there is any; -1 without any."""
    if row.shape != reference.shape[1:]:
        return -1
    equal = torch.isclose(reference, row, rtol=0, atol=0, equal_nan=row.is_floating_point()).all(dim=1)
    for candidates in (equal & unseen, equal):
        if candidates.any():
            position = int(candidates.to(torch.uint8).argmax())
            unseen[position] = False
            return position
    return -1
