"""What a capture records.

While a thread captures, operators run as always: that tells shapes and errors. What they change of the program's memory
is put back when the capture ends, because on a GPU a capture computes nothing.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.graphs import blocks
from vgpu.graphs.blocks import Block, Made
from vgpu.graphs.calls import Call, Place, Reserved
from vgpu.graphs.replay import Recorded
from vgpu.machine import captures, contexts, devices, memory, pinned, rng, streams
from vgpu.operators import again, dispatch
from vgpu.tensors.tensor import VirtualTensor, is_virtual

# Arguments of batch normalisation that its operators write to, although their schemas do not say so.
_WRITTEN = ("running_mean", "running_var")
# What C++ excludes when it enters Python, with a state that a replay does not have.
_ENTRY = torch._C.DispatchKeySet(torch._C.DispatchKey.PythonTLSSnapshot)
_COPY, _TO_COPY = "aten::copy_", "aten::_to_copy"
_WATCHED = "captures a CUDA graph"
_lock = threading.Lock()
_recording: list[Recording] = []
_patches = Patches()


class _Thread(threading.local):
    seen = 0  # calls that this thread has recorded


_thread = _Thread()


class Recording(captures.Capture):
    """A capture that records, from its beginning to its end."""

    def __init__(self, origin: streams.Stream, generators: list[rng.VirtualGenerator]) -> None:
        super().__init__(origin)
        self.calls: list[Call | Reserved] = []
        self._generators = {generator: generator.position for generator in generators}
        self._made: dict[Made, bool] = {}  # here, and whether a recorded call makes it
        self._found: dict[int, Block] = {}  # of before the capture, by the identity of their storage
        self._before: dict[int, tuple[Any, torch.UntypedStorage]] = {}  # what was written to, with its values
        self._hidden = blocks.hidden()
        for block in self._hidden:
            block.show()

    # What the functions that are put in place tell.

    def run(self, run: Any, func: Any, args: tuple, kwargs: dict | None) -> Any:
        """Run an operator and record it."""
        plan = dispatch.plan_of(func)
        given = dispatch.named(plan, args, kwargs)
        stream = self._stream(given)
        if stream is None or _moves_nothing(plan, func):
            return run(func, args, kwargs)
        if self.failed:
            raise errors.capture_has_failed() from None
        self._check(plan, func, given)
        guard = dispatch.included(), dispatch.excluded() - _ENTRY
        placed, named = tree_map(self._placed_at, (args, kwargs or {}))
        call = Call(func, placed, named, guard)
        for leaf in tree_leaves([given.get(name) for name in (*plan.written, *_WRITTEN)]):
            self._keep(leaf)
        before = _thread.seen
        result = run(func, args, kwargs)
        if _thread.seen == before:  # else its parts were recorded
            self._record(call, plan, result, stream)
        return result

    def made(self, storage: torch.UntypedStorage) -> None:
        """A storage has come to a device."""
        self._made.setdefault(blocks.make(storage), False)

    def reserved(self, tensor: VirtualTensor) -> None:
        """A factory has given memory that nobody has filled."""
        block = blocks.made(tensor._host.untyped_storage())
        if block is not None:
            self._reserve(block, None)

    # The end.

    def put_back(self) -> None:
        """Let the program's memory and generators be what they were before."""
        for storage, values in self._before.values():
            if storage.nbytes() == values.nbytes():  # else it was resized, and has no values of before
                storage.copy_(values)
        for generator, position in self._generators.items():
            generator.position = position

    def finish(self) -> Recorded:
        """What a replay needs."""
        for block, has_call in list(self._made.items()):
            storage = block.storage()
            if storage is not None and not has_call:
                self._reserve(block, again.copy(storage))
        kept = [block for block in self._made if block.storage() is not None]
        used = set(kept)
        for call in reversed(self.calls):
            called = set(call.blocks())
            call.last = [block for block in self._made.keys() & called if block not in used]
            used.update(call.last)
        for block in (*self._hidden, *kept):
            block.hide()
        return Recorded(self.calls, list(self._generators))

    def abandon(self) -> None:
        """Nothing comes of it: let the program see of earlier captures what it saw before."""
        for block in self._hidden:
            block.hide()

    # One call.

    def _stream(self, given: dict[str, Any]) -> streams.Stream | None:
        """The stream that runs a call, if it belongs to the capture. What other streams are given runs at once."""
        ordinals = {leaf._ordinal for leaf in tree_leaves(list(given.values())) if is_virtual(leaf)}
        asked = devices.ordinal_of(given["device"]) if given.get("device") is not None else None
        ordinals.update([] if asked is None else [asked])
        found = {ordinal: streams.current(ordinal) for ordinal in ordinals}
        inside = [stream for stream in found.values() if stream in self.steps]
        if inside and len(found) > 1:
            raise errors.not_simulated("copies between devices in a CUDA graph")
        return inside[0] if inside else None

    def _check(self, plan: Any, func: Any, given: dict[str, Any]) -> None:
        """Raise for what no graph can have, and for what virtual GPUs do not simulate in one."""
        leaves = [leaf for leaf in tree_leaves(list(given.values())) if isinstance(leaf, torch.Tensor)]
        if _copies_pageable(func, given):
            captures.forbid_pageable()
        if plan.collective is not None:
            raise errors.not_simulated("collectives in a CUDA graph")
        if any(leaf.layout is not torch.strided for leaf in leaves):
            raise errors.not_simulated("sparse tensors in a CUDA graph")
        generator = given.get("generator")
        if generator is not None and rng.drawn_from(self.origin.device_index, generator) not in self._generators:
            raise RuntimeError("Attempt to increase offset for a CUDA generator not in capture mode.")

    def _record(self, call: Call, plan: Any, result: Any, stream: streams.Stream) -> None:
        """Record a call that makes or writes memory; others need not be computed again."""
        for number, leaf in enumerate(tree_leaves(result)):
            if is_virtual(leaf):
                block = blocks.made(leaf._host.untyped_storage())
                if block is not None and self._made.get(block) is False:
                    self._made[block] = True
                    call.made.append((number, block))
            elif call.func._schema.name == _TO_COPY:
                call.brought.append((number, leaf))
        if call.made or call.brought or plan.written:
            _thread.seen += 1
            self.launch(stream)
            self.calls.append(call)

    def _placed_at(self, leaf: Any) -> Any:
        """What a recorded call has in the place of an argument."""
        if is_virtual(leaf):
            return Place(self._block(leaf._host.untyped_storage()), leaf._ordinal, again.layout(leaf._host))
        if _is_pageable(leaf):
            return leaf.detach().clone()
        return leaf

    def _block(self, storage: torch.UntypedStorage) -> Block:
        block = blocks.made(storage)
        if block is not None:
            if self._made.get(block) is False:
                self._reserve(block, again.copy(storage))
            return block
        found = self._found.get(storage._cdata)
        if found is None or found.storage() is not storage:
            found = self._found[storage._cdata] = Block(storage)
        return found

    def _reserve(self, block: Made, values: torch.UntypedStorage | None) -> None:
        self._made[block] = True
        self.calls.append(Reserved(block, values))

    def _keep(self, leaf: Any) -> None:
        """Keep the values of memory that was there before the capture, before the first call writes to it."""
        if not isinstance(leaf, torch.Tensor):
            return
        storage = leaf._host.untyped_storage() if is_virtual(leaf) else leaf.untyped_storage()
        if blocks.made(storage) not in self._made and storage._cdata not in self._before:
            self._before[storage._cdata] = storage, again.copy(storage)


def _moves_nothing(plan: Any, func: Any) -> bool:
    """Whether an operator only changes how a tensor sees its memory."""
    return (
        plan.views
        or torch.Tag.inplace_view in func.tags
        or func._schema.name.removeprefix("aten::") in dispatch.RESHAPES
    )


def _copies_pageable(func: Any, given: dict[str, Any]) -> bool:
    """Whether an operator copies between a device and memory of the host that is not pinned."""
    if func._schema.name == _TO_COPY:
        device = given.get("device")
        to_host = device is not None and device.type == "cpu" and devices.ordinal_of(device) is None
        return to_host and not given.get("non_blocking") and given["self"].numel() > 0
    if func._schema.name != _COPY or not given["self"].numel():
        return False
    return any(map(_is_pageable, given.values()))


def _is_pageable(value: Any) -> bool:
    """Whether it is a tensor of the host that is not pinned."""
    is_of_host = isinstance(value, torch.Tensor) and not is_virtual(value)
    return is_of_host and not pinned.is_pinned(value.untyped_storage())


class _Watch:
    """In the place of `memory.witness` while somebody captures."""

    def allocated(self, allocation: memory.Allocation, storage: torch.UntypedStorage) -> None:
        """A storage has come to a device."""
        capture = _here()
        if capture is not None and streams.current(allocation.ordinal) in capture.steps:
            capture.made(storage)

    def freed(self, allocation: memory.Allocation) -> None:
        """A storage has gone."""

    def made(self, func: Any, tensor: VirtualTensor) -> None:
        """A factory has made a tensor."""
        capture = _here()
        if capture is not None and "empty" in func._schema.name:
            capture.reserved(tensor)


def _here() -> Recording | None:
    capture = captures.here()
    return capture if isinstance(capture, Recording) else None


def begin(recording: Recording) -> None:
    """Let this thread record what it computes."""
    with _lock:
        if not _recording:
            _put_in_place()
        _recording.append(recording)
    captures.begin(recording)


def end(recording: Recording) -> None:
    """Let the thread record no longer, and put back what its calls have changed."""
    captures.end(recording)
    with _lock:
        if recording in _recording:
            _recording.remove(recording)
        if not _recording:
            _patches.restore()
            contexts.watch(_WATCHED, False)
    recording.put_back()


def forget() -> None:
    """Let nobody record: the GPUs are gone."""
    captures.forget()
    with _lock:
        _recording.clear()
        _patches.restore()
        contexts.watch(_WATCHED, False)


def _put_in_place() -> None:
    """Have operators and memory tell who captures; nobody is told while nobody captures."""
    run = VirtualTensor.run_operator

    def record(func: Any, args: tuple, kwargs: dict | None) -> Any:
        capture = _here()
        return run(func, args, kwargs) if capture is None else capture.run(run, func, args, kwargs)

    _patches.set(VirtualTensor, "run_operator", staticmethod(record))
    _patches.set(memory, "witness", _Watch())
    contexts.watch(_WATCHED, True)
