"""`torch.profiler` with ProfilerActivity.CUDA: it records what the host does, and says that there are no GPU times.

Without a driver the profiler would try to time every operator on the GPU and print a stack of C++ for each.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.autograd import profiler

from vgpu.base import errors, record
from vgpu.base.patches import Patches


def install(patches: Patches) -> None:
    """Replace what chooses the kind of profile."""
    kinds = torch._C._profiler.ProfilerState
    init = profiler.profile.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if getattr(self, "profiler_kind", None) == kinds.KINETO_GPU_FALLBACK:
            self.profiler_kind = kinds.KINETO
            record.write(record.NOT_SIMULATED, "torch.profiler on GPUs, which records the host")
            errors.note("virtual GPUs have no times: the profiler records what the host does")

    patches.set(profiler.profile, "__init__", __init__)
