"""`torch.cuda.cudart()`: the few functions of CUDA's runtime that PyTorch hands to programs."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from vgpu.base import errors
from vgpu.machine import devices, memory


class cudaError(int):
    """What a function of the runtime returns; `success` is all there is here."""

    success: cudaError


cudaError.success = cudaError(0)


def _succeed() -> cudaError:
    """A profiler from outside, as Nsight Systems, is told to start or to stop; there is none."""
    return cudaError.success


def _refuse(name: str) -> Callable:
    def refuse(*args: Any) -> Any:
        raise errors.not_simulated(f"{name} of torch.cuda.cudart()")

    return refuse


MODULE = types.ModuleType("torch._C._cudart")
vars(MODULE).update(
    cudaError=cudaError,
    cudaGetErrorString=lambda error: "no error" if error == cudaError.success else "unrecognized error code",
    cudaProfilerStart=_succeed,
    cudaProfilerStop=_succeed,
    cudaMemGetInfo=lambda ordinal: memory.free_and_total(devices.check(ordinal)),
)
# They take addresses of the host's memory and of streams, for libraries of CUDA.
for name in ("cudaHostRegister", "cudaHostUnregister", "cudaStreamCreate", "cudaStreamDestroy"):
    setattr(MODULE, name, _refuse(name))
