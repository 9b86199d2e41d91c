"""The words of PyTorch's own errors: a program that fails on real GPUs fails here with the same type and text."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from types import FrameType

import torch

from vgpu.base import program, record

LEGACY_NAMES = {
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "Float",
    torch.float64: "Double",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.int16: "Short",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.bool: "Bool",
    torch.complex32: "ComplexHalf",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}


NOT_PINNABLE = "Only dense CPU tensors can be pinned"


class Notice(UserWarning):
    """What virtual GPUs say of themselves. Real ones say nothing there, so it is never an error."""


@functools.cache
def note(text: str, kind: type[Warning] = Notice) -> None:
    """Warn whoever called PyTorch, at that line, once in a process.

    Args:
        text: what to say.
        kind: a class of warnings; PyTorch's own, where a GPU would say the same.
    """
    try:
        warnings.warn(text, kind, stacklevel=_level(program.is_own))
    except Notice:  # warnings are errors in this program: a line has to do
        print(f"vgpu: {text}", file=sys.stderr)


def warn(text: str) -> None:
    """Warn at the line of Python that called C++, which may be one of PyTorch's, as C++ does."""
    warnings.warn(text, stacklevel=_level(lambda frame: not frame.f_globals.get("__name__", "").startswith("vgpu.")))


def _level(is_wanted: Callable[[FrameType], bool]) -> int:
    """How far up the stack the first frame is that is wanted."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and not is_wanted(frame):
        level, frame = level + 1, frame.f_back
    return level + 1


def of_cuda(what: str, hint: str) -> RuntimeError:
    """The error of a call of CUDA's runtime that failed."""
    late = (
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
        "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    )
    return torch.AcceleratorError(
        f"CUDA error: {what}\n{hint}\n{'' if os.environ.get('CUDA_LAUNCH_BLOCKING') == '1' else late}"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    )


def _named(error: str) -> str:
    """Where CUDA's documentation explains one of its errors."""
    where = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information."
    return f"Search for `{error}' in {where}"


def device_assert() -> RuntimeError:
    """The error of every call of a device after an assertion of a kernel has failed there."""
    return of_cuda("device-side assert triggered", _named("cudaErrorAssert"))


def invalid_ordinal() -> RuntimeError:
    """The error CUDA raises for a device index the machine does not have."""
    return of_cuda("invalid device ordinal", "GPU device may be out of range, do you have enough GPUs?")


def invalid_handle() -> RuntimeError:
    """The error CUDA raises for the time between events of two devices, and for memory of a process that has ended."""
    return of_cuda("invalid resource handle", _named("cudaErrorInvalidResourceHandle"))


def stream_captures() -> RuntimeError:
    """The error CUDA raises for a call that waits for the device while a stream captures a graph."""
    return of_cuda("operation not permitted when stream is capturing", _named("cudaErrorStreamCaptureUnsupported"))


def is_capturing_already() -> RuntimeError:
    """The error CUDA raises where a capture begins on a stream that captures."""
    return of_cuda("the operation cannot be performed in the present state", _named("cudaErrorIllegalState"))


def capture_has_failed() -> RuntimeError:
    """The error of whatever comes after a call that a capture does not allow."""
    return of_cuda(
        "operation failed due to a previous error during capture", _named("cudaErrorStreamCaptureInvalidated")
    )


def capture_is_unjoined() -> RuntimeError:
    """The error CUDA raises at the end of a capture for a stream that the first one does not wait for."""
    return of_cuda("capturing stream has unjoined work", _named("cudaErrorStreamCaptureUnjoined"))


def capture_is_isolated() -> RuntimeError:
    """The error CUDA raises where a capturing stream is to wait for what no graph captures."""
    return of_cuda("dependency created on uncaptured work in another stream", _named("cudaErrorStreamCaptureIsolation"))


def event_is_captured() -> RuntimeError:
    """The error CUDA raises for the host that waits for an event of a graph."""
    return of_cuda(
        "operation not permitted on an event last recorded in a capturing stream", _named("cudaErrorCapturedEvent")
    )


def invalid_argument(ordinal: int) -> RuntimeError:
    """The error of CUDA's allocator for a device it does not know, which it prints as a letter."""
    return RuntimeError(f"Invalid device argument {chr(ordinal & 0xFF)}: did you call init?")


def no_devices() -> RuntimeError:
    """The error CUDA raises when `CUDA_VISIBLE_DEVICES` hides every device."""
    return RuntimeError("No CUDA GPUs are available")


def out_of_memory(ordinal: int, nbytes: int, total: int, limit: int, held: int, reserved: int) -> RuntimeError:
    """The error of CUDA's caching allocator for `nbytes` that do not fit; all figures in bytes."""
    if nbytes >= 1 << 60:
        return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more than 1EB memory.")
    allowed = f" {_size(limit)} allowed;" if limit < total else ""
    return torch.OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {_size(nbytes)}. GPU {ordinal} has a total capacity of {_size(total)} "
        f"of which {_size(total - reserved)} is free. Including non-PyTorch memory, this process has {_size(reserved)} "
        f"memory in use.{allowed} Of the allocated memory {_size(held)} is allocated by PyTorch, and "
        f"{_size(reserved - held)} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
        "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
        "Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
        "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


def _size(nbytes: int) -> str:
    """Bytes as CUDA's allocator writes them."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if nbytes >= 1 << power:
            return f"{nbytes / (1 << power):.2f} {unit}"
    return f"{nbytes} bytes"


def not_simulated(what: str) -> NotImplementedError:
    """For what exists on real GPUs and not here."""
    record.write(record.NOT_SIMULATED, what)
    return NotImplementedError(f"virtual GPUs do not simulate {what}")


def not_numpy(device: torch.device) -> TypeError:
    """What `Tensor.numpy()` raises for a tensor on a GPU."""
    return TypeError(
        f"can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )


def tensor_type(tensor: torch.Tensor) -> str:
    """The legacy type name, as in `torch.cuda.FloatTensor`; half of PyTorch's messages still use it."""
    where = ("torch.cuda" if tensor.is_cuda else "torch") + (".sparse" if tensor.is_sparse else "")
    return f"{where}.{LEGACY_NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix('torch.'))}Tensor"


def no_kernel(operator: str) -> NotImplementedError:
    """The error for an operator, by its full name without a namespace, that PyTorch has no kernel of for CUDA."""
    return NotImplementedError(
        f"Could not run 'aten::{operator}' with arguments from the 'CUDA' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom "
        "build). If you are a Facebook employee using PyTorch on mobile, please visit https://fburl.com/ptmfixes for "
        f"possible resolutions. 'aten::{operator}' is only available for these backends: [CPU]."
    )
