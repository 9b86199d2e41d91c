"""The words of a GPU where the tensors of an operator are on several devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from vgpu.base import errors
from vgpu.hardware import native_functions

Named = list[tuple[str, torch.Tensor]]
Words = Callable[[dict[str, torch.Tensor], dict[str, Any]], Exception | None]

#: Kernels of these want all on the GPU, and say so in an assertion of their own.
ASSERTS = frozenset(("smooth_l1_loss",))
#: Where the GPU's way to an operator goes through a different one, whose name and arguments the message shows.
THROUGH = {"embedding": "index_select", "stack": "cat"}
_RENAMED = {"embedding": {"indices": "index"}}
_ALL_ON_ONE = "Expected all tensors to be on the same device, but"


def error(name: str, overload: str, named: Named, given: dict[str, Any]) -> Exception:
    """The error of an operator for tensors of several devices.

    Args:
        name: of the operator, without `aten::`.
        overload: of it, empty for the default one.
        named: the tensors that count, in the order of the schema, each with its argument's name.
        given: all arguments by name.
    """
    own = _OWN.get(name)
    found = own(dict(named), given) if own is not None else None
    if found is not None:
        return found
    if name in THROUGH:
        kernel = THROUGH[name], ""
    elif name == "native_batch_norm" and _by_cudnn(dict(named)["input"]):
        kernel = "cudnn_batch_norm", overload
    else:
        kernel = native_functions.on_cuda(name, overload)
    if native_functions.iterates(*kernel):
        return _two_devices(named, next(t.device for _, t in named if t.is_cuda))
    common = named[0][1].device
    culprit, tensor = next((n, t) for n, t in named if t.device != common)
    culprit = _RENAMED.get(name, {}).get(culprit, culprit)
    return _in_method(culprit, tensor, named[0][1], native_functions.wrapper(*kernel))


def _in_method(culprit: str, tensor: torch.Tensor, common: torch.Tensor, method: str) -> RuntimeError:
    return RuntimeError(
        f"{_ALL_ON_ONE} got {culprit} is on {tensor.device}, different from other tensors on {common.device} (when "
        f"checking argument in method {method})"
    )


def _two_devices(named: Named, common: torch.device) -> RuntimeError:
    other = next(t.device for _, t in named if t.device != common)
    return RuntimeError(f"{_ALL_ON_ONE} found at least two devices, {common} and {other}!")


def _mse_loss(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception:
    """The difference is made beside `self`, whose device is the common one."""
    return _two_devices(list(named.items()), named["self"].device)


def _asserted(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception | None:
    place = next((place for place, tensor in enumerate(named.values(), 1) if not tensor.is_cuda), None)
    if place is None:  # all are on GPUs, though on several
        return None
    return RuntimeError(
        'iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "/pytorch/aten/src/ATen/native/cuda/Loops.cuh":109, '
        f"please report a bug to PyTorch. argument {place}: expected a CUDA device but found cpu"
    )


def _addcmul(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception | None:
    if given["tensor1"].is_cuda or given["tensor1"].dim():
        return None
    return RuntimeError(
        "CPU Scalar support for tensor1 argument is not supported when calling addcmul on CUDA tensors. However, CPU "
        "Scalar support for tensor2 is supported, please swap your tensor1 and tensor2 terms."
    )


def _second_must_be_there(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception:
    """The kernels of torchvision look at their second tensor, after the first has chosen CUDA's or the CPU's."""
    (_, first), (name, _) = list(given.items())[:2]
    return RuntimeError(f"{name} must be a {'CUDA' if first.is_cuda else 'CPU'} tensor")


def _by_cudnn(image: torch.Tensor) -> bool:
    """Whether cuDNN would normalize: `_batch_norm_impl_index` in PyTorch asks for more, which the CPU cannot know."""
    return image.is_cuda and image.dim() > 2 and torch.backends.cudnn.enabled


def _convolution(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception:
    image, weight, bias = named["input"], named["weight"], named.get("bias")
    if not image.is_cuda and not _by_onednn(image, weight, given.get("groups", 1)):
        return _slow_convolution(image, weight, given.get("transposed", False))
    kind = errors.tensor_type(image)
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and errors.tensor_type(other) != kind:
            return RuntimeError(f"Input type ({kind}) and {name} type ({errors.tensor_type(other)}) should be the same")
    other_device = next(t.device for t in named.values() if t.device != image.device)
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{image.device} and {other_device}! (when checking argument for argument weight in method "
        "wrapper_CUDA__cudnn_convolution)"
    )


def _by_onednn(image: torch.Tensor, weight: torch.Tensor, groups: int) -> bool:
    """Whether a picture on the host is large enough for oneDNN, as `ConvParams::use_mkldnn` in PyTorch decides it."""
    large_kernel = all(size > 3 for size in weight.shape[-2:])
    return groups > 1 or large_kernel or image.shape[0] > 1 or image.numel() > 20480


def _slow_convolution(image: torch.Tensor, weight: torch.Tensor, transposed: bool) -> Exception:
    """A small picture on the host takes the host's own way, on which the weights are the first that CUDA meets."""
    deep = image.dim() == 5
    if deep and not transposed:
        return errors.no_kernel("slow_conv3d_forward")
    method = "__slow_conv2d_forward"
    if transposed:
        method = "_slow_conv_transpose3d" if deep else "slow_conv_transpose2d"
    return _in_method("weight", weight, image, f"wrapper_CUDA_{method}")


def _segment_reduce(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception:
    key = "lengths" if given.get("lengths") is not None else "offsets"
    return RuntimeError(
        f"Expected data.get_device() == {key}_value.get_device() to be true, but got false.  (Could this error message "
        "be improved?  If so, please report an enhancement request to PyTorch.)"
    )


def _block_diag(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception:
    devices = [tensor.device for tensor in given["tensors"]]
    place = next(i for i, device in enumerate(devices) if device != devices[0])
    return RuntimeError(
        f"torch.block_diag: input tensors must all be on the same device. Input 0 is on device {devices[0]} and input "
        f"{place} is on device {devices[place]}"
    )


def _masked_index(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception:
    return RuntimeError(
        f"expected self and mask to be on the same device, but got mask on {given['mask'].device} and self on "
        f"{given['self'].device}"
    )


def _through_products(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception:
    """Two tensors are multiplied first, and their product with the third."""
    first, *others = given["i1"], given["i2"], given["i3"]
    return _in_method("mat2", next(t for t in others if t.device != first.device), first, "wrapper_CUDA_bmm")


def _sparse_addmm(named: dict[str, torch.Tensor], given: dict[str, Any]) -> Exception:
    """The result is made beside the dense matrix, before the product checks the devices."""
    return _in_method("mat1", given["mat1"], given["mat2"], "wrapper_SparseCUDA__addmm")


# Operators that check the devices themselves.
_OWN: dict[str, Words] = {
    **dict.fromkeys(ASSERTS, _asserted),
    "mse_loss": _mse_loss,
    **dict.fromkeys(("torchvision::nms", "torchvision::roi_align", "torchvision::roi_pool"), _second_must_be_there),
    **dict.fromkeys(("torchvision::ps_roi_align", "torchvision::ps_roi_pool"), _second_must_be_there),
    "_sparse_addmm": _sparse_addmm,
    "_trilinear": _through_products,
    "addcmul": _addcmul,
    "_convolution": _convolution,
    "_unsafe_masked_index": _masked_index,
    "_unsafe_masked_index_put_accumulate": _masked_index,
    "block_diag": _block_diag,
    "convolution": _convolution,
    "convolution_overrideable": _convolution,
    "segment_reduce": _segment_reduce,
}
