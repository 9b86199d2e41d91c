"""`torch.cuda.CUDAGraph`, `torch.cuda.graph` and `make_graphed_callables`: their own Python over this file's class."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import torch

from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.graphs import recorder
from vgpu.graphs.replay import Recorded
from vgpu.machine import captures, contexts, devices, history, memory, pools, ranks, rng, streams

_FILE = "torch.cuda.graphs"
_of_process: list[streams.Stream | None] = [None]  # the stream of captures
_MODES = ("global", "thread_local", "relaxed")


def install(patches: Patches) -> None:
    """Read PyTorch's file once more: its classes are made of what C++ has when it is read."""
    patches.set(torch._C, "_CUDAGraph", Graph)
    patches.set(torch._C, "_graph_pool_handle", pools.of_program)
    patches.set(torch._C, "_cuda_isCurrentStreamCapturing", _is_capturing)
    again: Any = _read_again()
    again.graph = _OfRanks("graph", (again.graph,), {"__module__": _FILE, "__doc__": again.graph.__doc__})
    for name in again.__all__:
        patches.set(torch.cuda.graphs, name, getattr(again, name))
        if hasattr(torch.cuda, name):
            patches.set(torch.cuda, name, getattr(again, name))
    patches.on_restore(recorder.forget)
    _of_process[0] = None


def _is_capturing() -> bool:
    return captures.is_any() and streams.current(devices.current()).is_capturing()


class _OfRanks(type):
    """Gives each rank that is a thread a stream of its own for its captures, as a process has it."""

    @property
    def default_capture_stream(cls) -> streams.Stream | None:
        """The stream of captures that were given none."""
        return cls._kept()[0]

    @default_capture_stream.setter
    def default_capture_stream(cls, stream: streams.Stream | None) -> None:
        cls._kept()[0] = stream

    def _kept(cls) -> list[streams.Stream | None]:
        return ranks.own("stream of captures", lambda: [None], _of_process)


def _read_again() -> ModuleType:
    """PyTorch's file as a new module, over what `install` has put in the place of C++'s names."""
    spec: Any = importlib.util.find_spec(_FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise errors.not_simulated(f"torch.cuda.CUDAGraph.{name}")

    return refuse


class Graph:
    """In the place of `torch._C._CUDAGraph`."""

    _keep: bool
    _recording: recorder.Recording | None
    _recorded: Recorded | None
    _is_ready: bool  # to be replayed; CUDA calls it instantiated
    _ordinal: int
    _pool: pools.Pool
    _generators: list[rng.VirtualGenerator]

    def __new__(cls, keep_graph: bool = False) -> Graph:
        made = super().__new__(cls)
        made._keep, made._generators = keep_graph, []
        made._recording = made._recorded = None
        made._is_ready = False
        return made

    _has_graph_exec = property(lambda self: self._is_ready)

    def register_generator_state(self, generator: rng.VirtualGenerator) -> None:
        """Let captured calls draw from a generator that is not the default one of the device."""
        self._generators.append(generator)

    def capture_begin(self, pool: pools.Pool | None = None, capture_error_mode: str = "global") -> None:
        """Record what this thread gives the current stream from now on."""
        stream = streams.current(devices.current())
        self._check(stream, capture_error_mode)
        self._pool = pools.of_graph() if pool is None else pool
        pools.begin(stream.device_index, self._pool)
        history.note_pools()
        generators = [rng.generator(stream.device_index), *self._generators]
        self._recording = recorder.Recording(stream, generators)
        recorder.begin(self._recording)

    def _check(self, stream: streams.Stream, mode: str) -> None:
        if self._is_ready:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        if mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {mode}"
            )
        if stream == streams.default(stream.device_index):
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.)"
            )
        if stream.is_capturing():
            raise errors.is_capturing_already()
        if captures.here() is not None:
            raise errors.not_simulated("two captures of CUDA graphs at a time in one thread")
        _refuse_witness()

    def capture_end(self) -> None:
        """End the capture."""
        self.capture_end_pre()
        if not self._keep:
            self.instantiate()
        self.capture_end_post()

    def capture_end_pre(self) -> None:
        """End the capture, and leave the graph as it was captured."""
        recording, self._recording = self._recording, None
        if recording is None:
            raise RuntimeError("capture_end() called before capture_begin().")
        if streams.current(devices.current()) != recording.origin:
            self._recording = recording
            raise RuntimeError("Capture must end on the same stream it began on.")
        recorder.end(recording)
        pools.end(recording.origin.device_index, self._pool)
        history.note_pools()
        if recording.failed or recording.has_unjoined():
            recording.abandon()
            raise errors.capture_has_failed() if recording.failed else errors.capture_is_unjoined()
        self._recorded, self._ordinal = recording.finish(), recording.origin.device_index
        if self._recorded.is_empty():
            errors.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
                "device or stream. (Triggered internally at /pytorch/aten/src/ATen/cuda/CUDAGraph.cpp:147.)"
            )

    def capture_end_post(self) -> None:
        """Forget what `instantiate` has used, of which nothing is kept here."""

    def instantiate(self) -> None:
        """Get ready to be replayed."""
        if self._recorded is None:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        if self._is_ready and not self._keep:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
        self._is_ready = True

    def replay(self) -> None:
        """Compute what was captured, with what its tensors hold now."""
        if self._recorded is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if captures.here() is not None:
            raise errors.not_simulated("replays of a CUDA graph inside of a capture")
        _refuse_witness()
        contexts.launch(self._ordinal)
        self._is_ready = True
        self._recorded.replay()

    def reset(self) -> None:
        """Forget what was captured."""
        self._recorded, self._is_ready = None, False

    def pool(self) -> pools.Pool:
        """The memory pool, which other captures may share."""
        if self._recorded is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def pools(self) -> list[pools.Pool]:
        """All pools that the graph uses."""
        return [self.pool()]

    def enable_debug_mode(self) -> None:
        """Keep the graph as it was captured."""
        self._keep = True


for _name in (
    *("debug_dump", "raw_cuda_graph", "raw_cuda_graph_exec", "get_currently_capturing_graph", "_retain_pool"),
    *("begin_capture_to_if_node", "end_capture_to_conditional_node"),
):
    setattr(Graph, _name, _refusal(_name))


def _refuse_witness() -> None:
    """Refuse graphs while races are looked for: nobody would tell the detector what a replay reads and writes."""
    if memory.witness is not None and not captures.is_any():
        raise errors.not_simulated("CUDA graphs while races are looked for")
