"""Two honest measures of a piece of code: seconds, paired with its rivals', and bytes alive at the worst moment."""

import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TURN = 0.004  # seconds


def paired_times(
    candidates: Mapping[str, Callable[[], Any]], rounds: int = 20, device: str | torch.device = "cpu"
) -> dict[str, list[float]]:
    """Seconds a call, `rounds` numbers a candidate, after a few calls to warm up.

    Every round runs all candidates, so that a slow moment of the machine hurts all of them: compare the ratios of a
    round, or medians. A round shuffles them and repeats a short call until its turn lasts `TURN`, so that none always
    meets the caches and the heap of the same neighbour. On a GPU each turn is waited for. Times on virtual GPUs mean
    nothing.
    """
    if rounds < 1:
        raise ValueError(f"rounds: expected 1 or more, got {rounds}")
    wait = torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None

    def turn(call: Callable[[], Any], calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        return (time.perf_counter() - start) / calls

    warm = {name: min(turn(call, 1), turn(call, 1)) for name, call in candidates.items()}
    calls = {name: max(1, round(TURN / seconds)) for name, seconds in warm.items()}
    times: dict[str, list[float]] = {name: [] for name in candidates}
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(list(candidates), len(candidates)):
            times[name].append(turn(candidates[name], calls[name]))
    return times


def median_ratio(times: Mapping[str, list[float]], name: str, base: str) -> float:
    """How many times longer `name` takes than `base`: the median over the rounds, each compared with itself."""
    return statistics.median(a / b for a, b in zip(times[name], times[base], strict=True))


class MemoryMeter(TorchDispatchMode):
    """Inside `with MemoryMeter() as meter:`, the bytes of tensors made there: alive at worst, and alive now.

    Counts every storage that an operation returns, forward and backward (on the CPU, where backward runs in the same
    thread), until it is freed; not the scratch memory inside a kernel. Tensors made before do not count, so a view
    of an input costs nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self._before: set[int] = set()
        self.peak = 0

    @property
    def alive(self) -> int:
        """Bytes of the counted storages that are alive at this moment."""
        self._alive = {key: entry for key, entry in self._alive.items() if not entry[0].expired()}
        return sum(size for _, size in self._alive.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        given = {_key(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        self._before |= given - self._alive.keys()
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor) and _key(leaf) not in given:
                storage = leaf.untyped_storage()
                self._alive[_key(leaf)] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, self.alive)
        return out


def _key(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def peak_bytes(call: Callable[[], Any]) -> int:
    """Bytes alive at the worst moment of `call()`, of the tensors it makes itself."""
    with MemoryMeter() as meter:
        call()
    return meter.peak
