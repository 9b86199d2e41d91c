"""What a rank hands to collectives: every call with its bytes, whether the program, DDP, FSDP or a DTensor makes it.

with Sent() as sent:
    net(x).sum().backward()
sent.calls      # ["all_reduce of 192 bytes", ...]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

# The names of PyTorch's operators for the collectives that this course counts, those of DTensor among them.
ALL_REDUCE = {"allreduce_", "all_reduce", "all_reduce_"}
ALL_GATHER = {"_allgather_base_", "all_gather_into_tensor", "allgather_"}
REDUCE_SCATTER = {"_reduce_scatter_base_", "reduce_scatter_tensor", "reduce_scatter_"}


class Sent(TorchDispatchMode):
    """A context that notes the collectives of this rank. Others than the three above are not counted.

    calls: a line for each, with the bytes of its larger tensor: what is added up, or what is gathered.
    """

    def __init__(self) -> None:
        super().__init__()
        self._found: list[tuple[str, int]] = []

    @property
    def calls(self) -> list[str]:
        """In the order of the calls."""
        return [f"{name} of {size} bytes" for name, size in self._found]

    def bytes_of_each_gpu(self, gpus: int) -> int:
        """What each GPU sends, if the collectives go round in a ring: an all_reduce takes two rounds, others one."""
        rounds = sum(size * (2 if name == "all_reduce" else 1) for name, size in self._found)
        return rounds * (gpus - 1) // gpus

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if "c10d" in func.namespace:
            name = func.overloadpacket.__name__
            if name in ALL_REDUCE:
                self._found.append(("all_reduce", _nbytes(args[0])))
            elif name in ALL_GATHER:
                self._found.append(("all_gather", max(_nbytes(args[0]), _nbytes(result))))
            elif name in REDUCE_SCATTER:
                self._found.append(("reduce_scatter", max(map(_nbytes, args[:2]))))
        return result


def _nbytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(_nbytes(item) for item in value if isinstance(item, Tensor | list | tuple))
    return 0
