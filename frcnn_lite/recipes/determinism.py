"""Run it twice, get the same bits: seeds, the deterministic switch, and a comparison that rounds nothing.

    seed_everything(7)
    with deterministic():
        first = train()
    print(same_bits(first, second))

What torch promises and what it does not: "Reproducibility" in its notes (docs.pytorch.org).
"""

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

SEED_LIMIT = 2**32  # NumPy's; Python and torch take more


def seed_everything(seed: int) -> None:
    """Seed the global generators of Python, NumPy (if installed) and torch, on the CPU and on every device.

    DataLoader workers draw their seeds from torch's generator, or from `DataLoader(generator=...)`, so they follow.

    Args:
        seed: 0 .. 2**32 - 1, the range that NumPy takes.

    Raises:
        ValueError: `seed` is outside that range.
    """
    if not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"`seed` must be between 0 and 2**32 - 1, the range that NumPy takes, got {seed}")
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(seed)


@contextmanager
def deterministic(*, warn_only: bool = False) -> Iterator[None]:
    """Inside, torch takes only algorithms that give the same bits again, and raises where it has none.

    Sets `use_deterministic_algorithms`, `cudnn.deterministic` and `cudnn.benchmark`, and puts them back afterwards.
    cuBLAS reads CUBLAS_WORKSPACE_CONFIG when its first handle is made, so it is set here and stays set: enter this
    before the first product on a GPU.

    Args:
        warn_only: warn instead of raising RuntimeError.
    """
    cudnn = torch.backends.cudnn
    before = (cudnn.deterministic, cudnn.benchmark)
    mode = torch.get_deterministic_debug_mode()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    try:
        cudnn.deterministic, cudnn.benchmark = True, False
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before
        torch.set_deterministic_debug_mode(mode)


@dataclass(frozen=True)
class BitReport:
    """The result of `same_bits`: `compared` leaves, and a line for each that differs. True where nothing does."""

    compared: int
    differences: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if not self.differences:
            return f"{self.compared} values, the same bit for bit"
        return "\n".join([f"{len(self.differences)} of {self.compared} values differ:", *self.differences])


def same_bits(a: Any, b: Any) -> BitReport:
    """Compare two states bit for bit, wherever their tensors are.

    Unlike `==`, a NaN equals a NaN of the same bits and 0.0 differs from -0.0; unlike `allclose`, nothing is near.

    Args:
        a: tensors, numbers, strings and None, in mappings, lists and tuples.
        b: what it is compared with.

    Returns:
        A report that is true where nothing differs; printed, it names each leaf that does.

    Raises:
        TypeError: a leaf of another kind, sparse tensors included.
    """
    differences: list[str] = []
    compared = _compare("", a, b, differences)
    return BitReport(compared, tuple(differences))


def _compare(path: str, a: Any, b: Any, differences: list[str]) -> int:
    """Append what differs below `path`; return the number of leaves looked at."""
    where = path or "value"
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if list(a) != list(b):
            differences.append(f"{where}: keys {list(a)} and {list(b)}")
            return 1
        return sum(_compare(f"{path}.{key}".lstrip("."), a[key], b[key], differences) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            differences.append(f"{where}: lengths {len(a)} and {len(b)}")
            return 1
        return sum(_compare(f"{path}[{k}]", *pair, differences) for k, pair in enumerate(zip(a, b, strict=True)))
    difference = _leaf_difference(a, b)
    if difference:
        differences.append(f"{where}: {difference}")
    return 1


def _leaf_difference(a: Any, b: Any) -> str:
    """The difference between two leaves in words; empty when there is none."""
    if type(a) is not type(b) and not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return f"a {type(a).__name__} and a {type(b).__name__}"
    if isinstance(a, float):
        a, b = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    if isinstance(a, Tensor):
        return _tensor_difference(a, b)
    if not isinstance(a, int | str | bytes | None):
        raise TypeError(f"same_bits compares tensors, numbers and strings, got {type(a).__name__}")
    return "" if a == b else f"{a!r} and {b!r}"


def _tensor_difference(a: Tensor, b: Tensor) -> str:
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}"
    if a.layout != torch.strided or b.layout != torch.strided:
        raise TypeError(f"same_bits compares dense tensors, got {a.layout} and {b.layout}")
    different = (_bytes(a) != _bytes(b)).any(dim=1)
    count = int(different.sum())
    if not count:
        return ""
    words = f"{count} of {a.numel()} elements differ"
    if a.is_floating_point():
        gaps = (a.detach().cpu().double() - b.detach().cpu().double()).abs()
        words += f", by {gaps.nan_to_num(0.0).max().item():.2g} at most"
    return words


def _bytes(tensor: Tensor) -> Tensor:
    """(elements, bytes an element) uint8 on the CPU."""
    whole = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return whole.view(torch.uint8).reshape(-1, tensor.element_size())
