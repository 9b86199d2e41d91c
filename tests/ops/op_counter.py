"""What operators a program calls, seen below autograd."""

from torch.utils._python_dispatch import TorchDispatchMode

# Operators that wait for the device: a value, or a shape that depends on values, is wanted on the CPU.
READS_BACK = (
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "unique",
    "item",
    "is_nonzero",
    "equal.default",
    "index_put",
)


class OpCounter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(str(func))
        return func(*args, **(kwargs or {}))
