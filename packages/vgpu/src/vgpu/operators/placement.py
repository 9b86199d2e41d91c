"""Which devices the tensors of an operator may be on, and the words of a GPU where they are on the wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from vgpu.base import errors
from vgpu.hardware import native_functions

Named = list[tuple[str, torch.Tensor]]

# Operators whose indices may be on the CPU, whatever the device of the tensor they index.
_INDEXING = frozenset(
    (
        "index",
        "index_put",
        "index_put_",
        "_index_put_impl_",
        "_unsafe_index",
        "_unsafe_index_put",
        "_unsafe_masked_index",
        "_unsafe_masked_index_put_accumulate",
    )
)
# A copy into a part of the first argument, whose device is that of the result.
INTO_FIRST = frozenset(("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"))
# Operators that take tensors of several devices on real GPUs.
_ANYWHERE = frozenset(
    (
        *INTO_FIRST,
        # copies from one device to another
        "copy",
        "copy_",
        "_to_copy",
        "_foreach_copy",
        "_foreach_copy_",
        "set_data",
        # they look at the shape of their second argument, not at its values
        "resize_as_",
        "is_same_size",
        "_has_same_storage_numel",
        "_new_zeros_with_same_feature_meta",
        # methods.py has checked the devices, in words of its own
        "set_",
        # they read the numbers of one argument, lengths, ends or places of cuts, on the host
        "linspace",
        "logspace",
        "_pack_padded_sequence",
        "_pad_packed_sequence",
        "_pack_padded_sequence_backward",
        "tensor_split",
        "ctc_loss",
        "_ctc_loss",
        "_ctc_loss_backward",
    )
)
# TensorIterator takes a 0-dim CPU tensor for a number. The result of these operators is made beside one argument,
# which therefore has to be on the GPU.
_RESULT_BESIDE = {
    "binary_cross_entropy_with_logits": ("target",),
    "addcmul": ("tensor1",),
    "index_fill": ("self",),
    "linalg_pinv": ("atol", "rtol"),
    "logical_and": ("self",),
    "logical_or": ("self",),
    "logical_xor": ("self",),
    "mse_loss": ("self", "target"),
}
# Kernels of these want all on the GPU, and say so in an assertion of their own.
_ASSERTS = frozenset(("smooth_l1_loss", "huber_loss"))
# Where the GPU's way to an operator goes through a different one, whose name and arguments the message shows.
_THROUGH = {"embedding": "index_select", "stack": "cat"}
_RENAMED = {"embedding": {"indices": "index"}}


class Placement:
    """The rules for one operator.

    Args:
        func: the operator.
        names: the names of its arguments.
        written: those that it writes to.
    """

    def __init__(self, func: torch._ops.OpOverload, names: list[str], written: frozenset[str]) -> None:
        self._name = func._schema.name.removeprefix("aten::")
        self._overload = "" if func._overloadname == "default" else func._overloadname
        self._names = names
        self._anywhere = self._name in _ANYWHERE
        self._indexes = self._name in _INDEXING
        self._counted = written | set(_RESULT_BESIDE.get(self._name, ()))
        self._strict: bool | None = None  # reading the yaml takes long, and few programs mix devices

    def on_one_device(self, args: tuple, kwargs: dict) -> bool:
        """Raise what a GPU raises for these devices, or return whether the result is on one.

        The rules: copies go anywhere; index operators read indices on the host too; a 0-dim CPU tensor is a number
        where TensorIterator checks; where one tensor is on "meta", all of the operator is.
        """
        if self._anywhere:
            return True
        given = dict(zip(self._names, args, strict=False)) | kwargs
        named = self._that_count(given)
        if any(t.is_meta for _, t in named):
            return False
        several = len({t.device for _, t in named}) > 1
        if self._indexes and not several:
            _check_indices(given["self"].device, given["indices"])
        # A 0-dim CPU tensor is a number; a GPU tensor among CPU ones is not.
        if several or (named and not named[0][1].is_cuda):
            raise self._mismatch(named, given)
        return True

    def _that_count(self, given: dict[str, Any]) -> Named:
        if self._strict is None:
            through = _THROUGH.get(self._name)
            name, overload = (through, "") if through else native_functions.on_cuda(self._name, self._overload)
            self._strict = self._name in _ASSERTS or not native_functions.iterates(name, overload)
        named: Named = []
        for key, value in given.items():
            if self._indexes and key == "indices":
                continue
            for leaf in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(leaf, torch.Tensor) and (
                    leaf.is_cuda or leaf.dim() or self._strict or key in self._counted
                ):
                    named.append((key, leaf))
        return named

    def _mismatch(self, named: Named, given: dict[str, Any]) -> Exception:
        """The error for tensors of several devices, in the order of the schema."""
        own = _OWN_WORDS.get(self._name, _none)(dict(named), given)
        if own is not None:
            return own
        if self._name in _ASSERTS:
            place = next(place for place, (_, t) in enumerate(named, 1) if not t.is_cuda)
            return RuntimeError(
                'iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "/pytorch/aten/src/ATen/native/cuda/Loops.cuh":'
                f"109, please report a bug to PyTorch. argument {place}: expected a CUDA device but found cpu"
            )
        name, overload = self._name, self._overload
        if name in _THROUGH:
            name, overload = _THROUGH[name], ""
        elif name == "native_batch_norm" and _by_cudnn(dict(named)["input"]):
            name = "cudnn_batch_norm"
        name, overload = native_functions.on_cuda(name, overload)
        start = "Expected all tensors to be on the same device, but"
        if native_functions.iterates(name, overload):
            common = next(t.device for _, t in named if t.is_cuda)
            if self._name == "mse_loss":  # subtracts first, beside `self`
                common = named[0][1].device
            other = next(t.device for _, t in named if t.device != common)
            return RuntimeError(f"{start} found at least two devices, {common} and {other}!")
        common = named[0][1].device
        culprit, tensor = next((n, t) for n, t in named if t.device != common)
        culprit = _RENAMED.get(self._name, {}).get(culprit, culprit)
        return RuntimeError(
            f"{start} got {culprit} is on {tensor.device}, different from other tensors on {common} (when checking "
            f"argument in method {native_functions.wrapper(name, overload)})"
        )


def _check_indices(on: torch.device, indices: Any) -> None:
    for index in indices:
        if isinstance(index, torch.Tensor) and index.is_cuda and index.device != on:
            either = "cpu or on " if on.type == "cuda" or index.dtype in (torch.bool, torch.uint8) else ""
            raise RuntimeError(f"indices should be either on {either}the same device as the indexed tensor ({on})")


def _none(named: dict[str, torch.Tensor], given: dict[str, Any]) -> None:
    return None


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
    return RuntimeError(
        f"Expected all tensors to be on the same device, but got weight is on {weight.device}, different from other "
        f"tensors on {image.device} (when checking argument in method wrapper_CUDA_{method})"
    )


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


# Operators that check the devices themselves.
_OWN_WORDS: dict[str, Callable[[dict[str, torch.Tensor], dict[str, Any]], Exception | None]] = {
    **dict.fromkeys(("torchvision::nms", "torchvision::roi_align", "torchvision::roi_pool"), _second_must_be_there),
    **dict.fromkeys(("torchvision::ps_roi_align", "torchvision::ps_roi_pool"), _second_must_be_there),
    "addcmul": _addcmul,
    "_convolution": _convolution,
    "_unsafe_masked_index": _masked_index,
    "_unsafe_masked_index_put_accumulate": _masked_index,
    "block_diag": _block_diag,
    "convolution": _convolution,
    "convolution_overrideable": _convolution,
    "segment_reduce": _segment_reduce,
}
