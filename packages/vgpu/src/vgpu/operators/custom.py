"""Operators that somebody wrote in Python, as `torch.library.custom_op` makes them: they are given virtual tensors.

What is inside such an operator is a program for GPUs like any other, so it must see `cuda:k`. Two kinds run on the
hosts in spite of that, because what they have for GPUs is likely to be a kernel of Triton's or of CUDA's, which cannot
run here: operators with a kernel for the CPU of their own, in Python or in C++ as torchvision's have, and those of the
lower interface, `torch.library.impl(name, "default")`, which choose a kernel by the device that they see.
"""

from __future__ import annotations

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch._library.custom_ops import OPDEFS

_PYTHON = torch.library._impls  # "namespace/name/key" of every kernel that came through torch.library


def kernel(func: torch._ops.OpOverload) -> DispatchKeySet | None:
    """The keys under which an operator runs with virtual tensors; None where it runs on the hosts.

    Raises:
        NotImplementedError: for a kernel in Python that is for the CPU only, in the words of PyTorch.
    """
    qualified = func.name()
    place = qualified.replace("::", "/")
    everywhere, on_gpus = f"{place}/CompositeExplicitAutograd" in _PYTHON, f"{place}/CUDA" in _PYTHON
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if has(qualified, "CPU"):
        if f"{place}/CPU" in _PYTHON and not (on_gpus or everywhere or has(qualified, "CUDA")):
            raise NotImplementedError(
                f"Could not run '{qualified}' with arguments from the 'CUDA' backend. This could be because the "
                "operator doesn't exist for this backend, or was omitted during the selective/custom build process (if "
                f"using custom build). '{qualified}' is only available for these backends: [CPU]."
            )
        return None
    if everywhere and qualified in OPDEFS:
        return DispatchKeySet(DispatchKey.CPU)  # this key has no kernel of its own, so the one for all devices runs
    return DispatchKeySet(DispatchKey.CUDA) if on_gpus else None
