"""What a program does on its devices: operators, copies between devices, allocations, and the threads they run in.

    with vgpu.trace() as t:
        model(x)
    print(t.summary())

A `Trace` looks at PyTorch, not at the engine beneath it, and so records on real GPUs what it records on virtual ones.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vgpu.base.patches import Patches

_COPIES = frozenset(("_to_copy", "copy_", "_local_scalar_dense"))
# Copies between GPUs that never meet the dispatcher on real hardware.
_COMM = ("scatter", "scatter_out", "gather", "gather_out", "broadcast", "broadcast_out", "broadcast_coalesced")


class Event(NamedTuple):
    """One operator or copy: `source` is where a copy came from, `nbytes` what it moved, `allocated` what is new."""

    name: str
    device: torch.device
    thread: str
    start: float  # seconds since the trace began
    seconds: float
    source: torch.device | None = None
    nbytes: int = 0
    allocated: int = 0


class Trace:
    """The events of a block of code, in the order in which they ended. Times are those of the host.

    Attributes:
        events: list of `Event`, of all threads.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._began = time.perf_counter()
        self._thread = threading.local()

    def copies(self) -> list[Event]:
        """The events that moved bytes from one device to another."""
        return [e for e in self.events if e.source is not None]

    def bytes_moved(self) -> dict[tuple[str, str], int]:
        """Bytes by (from, to)."""
        moved: Counter[tuple[str, str]] = Counter()
        for event in self.copies():
            moved[str(event.source), str(event.device)] += event.nbytes
        return dict(moved)

    def summary(self) -> str:
        """A table of operators, threads and new bytes on each device, then one of the copies."""
        lines = [f"{'device':8} {'operators':>9} {'threads':>7} {'allocated':>12}"]
        for device in sorted({str(e.device) for e in self.events}):
            own = [e for e in self.events if str(e.device) == device and e.source is None]
            threads, new = len({e.thread for e in own}), sum(e.allocated for e in own)
            lines.append(f"{device:8} {len(own):9} {threads:7} {new:12,}")
        count = Counter((str(e.source), str(e.device)) for e in self.copies())
        lines += [f"{a} -> {b}: {count[a, b]} copies, {n:,} bytes" for (a, b), n in sorted(self.bytes_moved().items())]
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write a Chrome trace (for ui.perfetto.dev): a process for each device, a row for each thread."""
        rows = {name: k for k, name in enumerate(dict.fromkeys(e.thread for e in self.events))}
        places = {name: k for k, name in enumerate(sorted({str(e.device) for e in self.events}))}
        out: list[dict[str, Any]] = []
        for name, k in places.items():
            out.append({"ph": "M", "name": "process_name", "pid": k, "args": {"name": name}})
            named = {"ph": "M", "name": "thread_name", "pid": k}
            out += [{**named, "tid": n, "args": {"name": thread}} for thread, n in rows.items()]
        for e in self.events:
            figures = {"allocated": e.allocated} if e.source is None else {"from": str(e.source), "bytes": e.nbytes}
            where = {"pid": places[str(e.device)], "tid": rows[e.thread], "cat": "copy" if e.source else "operator"}
            when = {"ts": e.start * 1e6, "dur": e.seconds * 1e6}
            out.append({"ph": "X", "name": e.name, **when, **where, "args": figures})
        Path(path).write_text(json.dumps({"traceEvents": out, "displayTimeUnit": "ms"}), encoding="utf-8")

    def _add(self, name: str, device: torch.device, began: float, **figures: Any) -> None:
        now = time.perf_counter()
        place = threading.current_thread().name
        self.events.append(Event(name, device, place, began - self._began, now - began, **figures))

    def operator(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Run one operator and record it."""
        began = time.perf_counter()
        result = func(*args, **kwargs)
        if func.namespace == "prim" or getattr(self._thread, "inside_comm", False):
            return result
        name = func._schema.name.removeprefix("aten::")
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        made = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        if not (given or made):
            return result
        device = (made or given)[0].device
        if name in _COPIES:
            read, target = given[-1 if name == "copy_" else 0], device if made else torch.device("cpu")
            if read.device != target:
                new = _new_bytes(func, made)
                self._add(name, target, began, source=read.device, nbytes=_size(read), allocated=new)
                return result
        self._add(name, device, began, allocated=_new_bytes(func, made))
        return result

    def comm(self, name: str, function: Callable) -> Callable:
        """Wrap one of the functions beneath `torch.nn.parallel.comm` so that its copies are recorded."""

        def recorded(first: Any, *args: Any, **kwargs: Any) -> Any:
            began, self._thread.inside_comm = time.perf_counter(), True
            try:
                result = function(first, *args, **kwargs)
            finally:
                self._thread.inside_comm = False
            sources, targets = tree_leaves(first), tree_leaves(result)
            pairs = [(sources[k % len(sources)], t, t) for k, t in enumerate(targets)]
            if name.startswith("gather"):
                pairs = [(s, targets[0], s) for s in sources]
            for source, target, moved in pairs:
                if source.device != target.device:
                    size, new = _size(moved), not name.endswith("_out")
                    self._add(name, target.device, began, source=source.device, nbytes=size, allocated=size * new)
            return result

        return recorded


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _new_bytes(func: Any, made: list[torch.Tensor]) -> int:
    """Bytes of the storages an operator made; views and results written in place are not new."""
    if any(r.alias_info is not None for r in func._schema.returns):
        return 0
    return sum(t.untyped_storage().nbytes() for t in made if t.layout is torch.strided)


class _Recorder(TorchDispatchMode):
    """Shows a trace the operators of one thread."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self.trace.operator(func, args, kwargs or {})


@contextlib.contextmanager
def trace() -> Iterator[Trace]:
    """Record what the block does, in this thread and in threads it starts.

    Yields:
        the `Trace`, complete when the block has ended.
    """
    recording, patches = Trace(), Patches()
    run = threading.Thread.run

    def recorded_run(thread: threading.Thread) -> None:
        with _Recorder(recording):  # modes belong to a thread, and nn.DataParallel runs replicas in threads
            run(thread)

    patches.set(threading.Thread, "run", recorded_run)
    for name in _COMM:
        function = getattr(torch._C, f"_{name}", None)
        if function is not None:
            patches.set(torch._C, f"_{name}", recording.comm(name, function))
    try:
        with _Recorder(recording):
            yield recording
    finally:
        patches.restore()
