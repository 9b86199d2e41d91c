"""How many kernels a function launches on a GPU, counted on any machine."""

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class _Launches(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        marks = [argument.alias_info for argument in func._schema.arguments]
        a_view = any(mark is not None and not mark.is_write for mark in marks)
        without_work = func._schema.name.startswith(("aten::empty", "prim::"))  # memory alone, and questions
        self.count += not (a_view or without_work)
        return func(*args, **(kwargs or {}))


def launched(function: Callable[..., Any], *arguments: Any) -> int:
    """Operations of PyTorch that compute: each is a kernel of its own. Views and empty memory launch none."""
    with _Launches() as launches:
        function(*arguments)
    return launches.count
