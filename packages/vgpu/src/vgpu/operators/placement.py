"""Which devices the tensors of an operator may be on."""

from __future__ import annotations

from typing import Any

import torch

from vgpu.hardware import native_functions
from vgpu.operators import mismatch

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
            raise mismatch.error(self._name, self._overload, named, given)
        return True

    def _that_count(self, given: dict[str, Any]) -> mismatch.Named:
        if self._strict is None:
            through = mismatch.THROUGH.get(self._name)
            name, overload = (through, "") if through else native_functions.on_cuda(self._name, self._overload)
            self._strict = self._name in mismatch.ASSERTS or not native_functions.iterates(name, overload)
        named: mismatch.Named = []
        for key, value in given.items():
            if self._indexes and key == "indices":
                continue
            for leaf in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(leaf, torch.Tensor) and (
                    leaf.is_cuda or leaf.dim() or self._strict or key in self._counted
                ):
                    named.append((key, leaf))
        return named


def _check_indices(on: torch.device, indices: Any) -> None:
    for index in indices:
        if isinstance(index, torch.Tensor) and index.is_cuda and index.device != on:
            either = "cpu or on " if on.type == "cuda" or index.dtype in (torch.bool, torch.uint8) else ""
            raise RuntimeError(f"indices should be either on {either}the same device as the indexed tensor ({on})")
