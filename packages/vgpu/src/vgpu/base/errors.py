"""The words of PyTorch's own errors: a program that fails on real GPUs fails here with the same type and text."""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from pathlib import Path

import torch

from vgpu.base import record

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
        warnings.warn(text, kind, stacklevel=_frames(("torch.", "vgpu.")))
    except Notice:  # warnings are errors in this program: a line has to do
        print(f"vgpu: {text}", file=sys.stderr)


def warn(text: str) -> None:
    """Warn at the line of Python that called C++, which may be one of PyTorch's, as C++ does."""
    warnings.warn(text, stacklevel=_frames(("vgpu.",)))


def _frames(inside: tuple[str, ...]) -> int:
    """How far up the stack the caller's caller is that belongs to none of these packages."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
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


# Where the GPU's way to an operator goes through another one, whose name and arguments the message shows.
_ON_CUDA = {"embedding": "index_select", "stack": "cat", "native_batch_norm": "cudnn_batch_norm"}
_RENAMED = {"indices": "index"}


def mismatch(func: torch._ops.OpOverload, named: list[tuple[str, torch.Tensor]]) -> RuntimeError:
    """The error for tensors of several devices.

    Args:
        func: the operator that was called.
        named: its tensor arguments in schema order, each with its argument name.
    """
    name = func._schema.name.removeprefix("aten::")
    if name in ("convolution", "_convolution", "convolution_overrideable"):
        return _convolution_mismatch(named)
    gpus = [t for _, t in named if t.is_cuda]
    overload = "" if func._overloadname == "default" else func._overloadname
    if name in _ON_CUDA:
        name, overload = _ON_CUDA[name], ""
    entry = _yaml_entry(name, overload)
    if _iterates(entry):
        common = gpus[0].device
        other = next(t.device for _, t in named if t.device != common)
        text = f"found at least two devices, {common} and {other}!"
        return RuntimeError(f"Expected all tensors to be on the same device, but {text}")
    common = named[0][1].device
    culprit, tensor = next((n, t) for n, t in named if t.device != common)
    return RuntimeError(
        f"Expected all tensors to be on the same device, but got {_RENAMED.get(culprit, culprit)} is on "
        f"{tensor.device}, different from other tensors on {common} (when checking argument in method "
        f"wrapper_CUDA_{_kernel(name, overload, 'structured' in entry)})"
    )


def _kernel(name: str, overload: str, structured: bool) -> str:
    """What PyTorch calls the function that checks, as in torchgen/dest/register_dispatch_key.py."""
    if overload.endswith("out"):
        name = f"{name}_out"
    if not structured:
        return f"{overload}_{name}"
    return f"{name}_{overload}" if overload else name


def _convolution_mismatch(named: list[tuple[str, torch.Tensor]]) -> RuntimeError:
    given = dict(named)
    image, weight = given["input"], given["weight"]
    if tensor_type(image) != tensor_type(weight):
        return RuntimeError(
            f"Input type ({tensor_type(image)}) and weight type ({tensor_type(weight)}) should be the same"
        )
    bias = given.get("bias")
    if bias is not None and tensor_type(bias) != tensor_type(image):
        return RuntimeError(f"Input type ({tensor_type(image)}) and bias type ({tensor_type(bias)}) should be the same")
    other = next(t.device for _, t in named if t.device != image.device)
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {image.device} and {other}! "
        "(when checking argument for argument weight in method wrapper_CUDA__cudnn_convolution)"
    )


@functools.cache
def _native_functions() -> str:
    path = Path(torch.__file__).parent.parent / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"
    return path.read_text(encoding="utf-8") if path.exists() else ""


@functools.cache
def _yaml_entry(name: str, overload: str) -> str:
    """What native_functions.yaml says of an operator and of the one it delegates to; empty for other operators."""
    base = re.escape(name + (f".{overload}" if overload else ""))
    entry = re.search(rf"^- func: {base}\(.*?(?=^- func:|\Z)", _native_functions(), re.MULTILINE | re.DOTALL)
    if entry is None:
        return ""
    delegate = re.search(r"structured_delegate: ([^.\s]+)\.?(\S*)", entry[0])
    return entry[0] + (_yaml_entry(delegate[1], delegate[2]) if delegate else "")


def _iterates(entry: str) -> bool:
    """True where TensorIterator checks the devices (the yaml says NoCheck), not the generated wrapper."""
    return not entry or "device_check: NoCheck" in entry or "CUDA" not in entry
