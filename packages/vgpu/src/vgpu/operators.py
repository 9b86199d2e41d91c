"""Operators that somebody wrote in Python, as `torch.library.custom_op` makes them: they are given virtual tensors.

What is inside such an operator is a program for GPUs like any other, so it must see `cuda:k`. An operator of C++ that
is not PyTorch's own, as those of torchvision, runs its CPU kernel on the hosts.
"""

from __future__ import annotations

import torch
from torch._C import DispatchKey, DispatchKeySet

_PYTHON = torch.library._impls  # "namespace/name/key" of every kernel that came through torch.library
_CUDA = DispatchKeySet(DispatchKey.CUDA)


def kernel(func: torch._ops.OpOverload) -> DispatchKeySet | None:
    """The keys under which an operator has a kernel for GPUs in Python; None where it has none at all in Python.

    Raises:
        NotImplementedError: for a kernel in Python that is for the CPU only, in the words of PyTorch.
    """
    qualified = func.name()
    place = qualified.replace("::", "/")
    if f"{place}/CUDA" in _PYTHON or f"{place}/CompositeExplicitAutograd" in _PYTHON:
        return _CUDA
    if f"{place}/CPU" in _PYTHON and not torch._C._dispatch_has_kernel_for_dispatch_key(qualified, "CUDA"):
        raise NotImplementedError(
            f"Could not run '{qualified}' with arguments from the 'CUDA' backend. This could be because the operator "
            "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom "
            f"build). '{qualified}' is only available for these backends: [CPU]."
        )
    return None
